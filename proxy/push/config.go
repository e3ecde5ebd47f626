package push

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Limits and defaults of a Handler.
const (
	DefaultMaxConcurrent = 10
	MaxConcurrent        = stream.MaxCredits
	DefaultTimeout       = 5 * time.Minute
	MinTimeout           = 10 * time.Millisecond
	MaxTimeout           = stream.MaxAutoRenew // locks are not renewed for longer (LOCK-9)
)

// Handler configures pushes of the messages of one source. Zero means the default, except for Source and URL.
type Handler struct {
	// Source is "queues/orders" or "topics/news/subscriptions/eu"; "/" in a name is written "%2F".
	Source string
	// URL is http://, https://, or unix:///path/of.sock for a socket, which may have a path of its own:
	// unix:///path/of.sock:/on-order.
	URL string

	MaxConcurrent         int           // concurrent calls, for a source without sessions
	MaxConcurrentSessions int           // concurrent sessions, each with one call at a time
	Timeout               time.Duration // of a call; the lock is renewed until then
}

// WithDefaults sets the defaults and checks all fields. An error names the field and its bounds.
func (h Handler) WithDefaults() (Handler, error) {
	if _, err := sourceOf(h.Source); err != nil {
		return h, err
	}
	if _, err := targetOf(h.URL); err != nil {
		return h, err
	}
	numbers := []struct {
		name          string
		value         *int
		initial, most int
	}{
		{"maxConcurrent", &h.MaxConcurrent, DefaultMaxConcurrent, MaxConcurrent},
		{
			"maxConcurrentSessions",
			&h.MaxConcurrentSessions,
			semantics.DefaultMaxSessions,
			semantics.MaxConcurrentSession,
		},
	}
	for _, n := range numbers {
		if *n.value == 0 {
			*n.value = n.initial
		}
		if *n.value < 1 || *n.value > n.most {
			return h, fmt.Errorf("%s is %d, must be 1 to %d", n.name, *n.value, n.most)
		}
	}
	if h.Timeout == 0 {
		h.Timeout = DefaultTimeout
	}
	if h.Timeout < MinTimeout || h.Timeout > MaxTimeout {
		return h, fmt.Errorf("timeout is %s, must be %s to %s", h.Timeout, MinTimeout, MaxTimeout)
	}
	return h, nil
}

// Shown returns the URL without its password.
func (h Handler) Shown() string {
	parsed, err := url.Parse(h.URL)
	if err != nil {
		return "***"
	}
	return parsed.Redacted()
}

// sourceOf parses a resource name.
func sourceOf(resource string) (semantics.Source, error) {
	parts := strings.Split(resource, "/")
	names := make([]string, 0, 2)
	for i := 1; i < len(parts); i += 2 {
		name, err := url.PathUnescape(parts[i])
		if err != nil {
			return semantics.Source{}, fmt.Errorf(
				"source is %q, which has an invalid escape; write \"/\" in a name as %%2F: %w", resource, err,
			)
		}
		names = append(names, name)
	}
	var path string
	var err error
	switch {
	case len(parts) == 2 && parts[0] == "queues":
		path, err = semantics.ParsePath(names[0])
	case len(parts) == 4 && parts[0] == "topics" && parts[2] == "subscriptions":
		if path, err = semantics.ParsePath(names[0]); err == nil {
			path, err = semantics.ParseSourcePath(semantics.SubscriptionPath(path, names[1]))
		}
	default:
		return semantics.Source{}, fmt.Errorf(
			`source is %q, must be "queues/NAME" or "topics/NAME/subscriptions/NAME"`, resource,
		)
	}
	if err != nil {
		return semantics.Source{}, fmt.Errorf("source is %q: %s", resource, semantics.AsError(err).Message)
	}
	return semantics.Source{Path: path}, nil
}

// target is where calls are sent.
type target struct {
	url    string // for HTTP requests
	socket string // path of a unix socket, or empty
}

func targetOf(address string) (target, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return target{}, fmt.Errorf("url is malformed") // the cause would contain the URL with its password
	}
	switch parsed.Scheme {
	case "http", "https":
		if parsed.Hostname() == "" || parsed.Fragment != "" {
			return target{}, fmt.Errorf("url is %q, must name a host and have no fragment", parsed.Redacted())
		}
		return target{url: address}, nil
	case "unix":
		socket, path, _ := strings.Cut(parsed.Path, ":")
		if parsed.Host != "" || !strings.HasPrefix(socket, "/") || path != "" && !strings.HasPrefix(path, "/") ||
			parsed.Fragment != "" {
			return target{}, fmt.Errorf(
				"url is %q, must be unix:///path/of.sock or unix:///path/of.sock:/path", parsed.Redacted(),
			)
		}
		inside := url.URL{Scheme: "http", Host: "localhost", Path: path, RawQuery: parsed.RawQuery}
		return target{url: inside.String(), socket: socket}, nil
	default:
		return target{}, fmt.Errorf("url is %q, must begin with http://, https:// or unix://", parsed.Redacted())
	}
}
