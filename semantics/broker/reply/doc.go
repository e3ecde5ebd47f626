// Package reply has Request: it sends a message and waits for the reply to it, in a session of each reply queue that is
// the broker's own. Package broker makes Requests and offers Request to the edges; what a request needs of it is the
// interface Broker. Each reply queue in use has goroutines of its own, which end a minute after the last request, or
// when the broker drains.
package reply
