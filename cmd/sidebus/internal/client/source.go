package client

import (
	"net/url"
	"strings"
)

const queuePrefix = "queues/"

// Resource gives the resource name of what an operator calls "orders" or "queues/orders". A name may be percent-encoded
// as in a route of the HTTP API, since no name has a percent sign.
func Resource(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if strings.HasPrefix(name, queuePrefix) || strings.HasPrefix(name, "topics/") { // of topics the sidecar says what it thinks
		return name
	}
	return queuePrefix + name
}

// Name gives the name of a queue without the kind of resource.
func Name(resource string) string { return strings.TrimPrefix(resource, queuePrefix) }
