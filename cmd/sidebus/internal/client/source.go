package client

import (
	"net/url"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

const (
	queuePrefix = "queues/"
	topicPrefix = "topics/"
)

// Resource returns the resource name of what an operator calls "orders" or "queues/orders", "topics/news", or
// "topics/news/subscriptions/eu". A name may be percent-encoded as in a route of the HTTP API, since no name has a
// percent sign. A backslash is a slash (ENT-3).
func Resource(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, queuePrefix) || strings.HasPrefix(name, topicPrefix) {
		return name
	}
	return queuePrefix + name
}

// Kind returns the kind of entity that a resource name names.
func Kind(resource string) semantics.Kind {
	if strings.HasPrefix(resource, queuePrefix) {
		return semantics.QueueKind
	}
	if _, _, ok := semantics.SplitSubscription(resource); ok {
		return semantics.SubscriptionKind
	}
	return semantics.TopicKind
}

// Name returns the name of a queue without the kind of resource, and leaves others as they are: so all are what an
// operator calls them.
func Name(resource string) string { return strings.TrimPrefix(resource, queuePrefix) }

// TopicOf returns the resource name of a subscription's topic and the name of the subscription within it.
func TopicOf(resource string) (topic, name string) {
	topic, name, _ = semantics.SplitSubscription(resource)
	return topic, name
}

// Subscription returns the resource name of a subscription.
func Subscription(topic, name string) string { return topic + "/subscriptions/" + name }
