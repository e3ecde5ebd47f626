package proxy

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// spareConnections is how many connections over the limit are kept open to be told so, over HTTP.
const spareConnections = 100

// connections counts the connections of both wires against one limit (QUOTA-5). A connection that is one too many never
// hangs: over gRPC it is closed at once, which a client sees as UNAVAILABLE and tries again later; over HTTP its
// requests are answered THROTTLED, unless even those connections are too many.
type connections struct {
	limit   int64
	open    atomic.Int64
	metrics *obs.Metrics
	logger  *slog.Logger
}

// limited gives a listener whose connections are counted. tells says whether one that is too many can be told so.
func (c *connections) limited(listener net.Listener, wire string, tells bool) net.Listener {
	return &limitedListener{Listener: listener, connections: c, wire: wire, tells: tells}
}

type limitedListener struct {
	net.Listener
	*connections

	wire  string
	tells bool
}

// Accept gives the next connection that is to be served.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := l.open.Add(1)
		counted := &countedConn{Conn: conn, listener: l, isOverLimit: n > l.limit}
		l.metrics.Connections.WithLabelValues(l.wire).Inc()
		if !counted.isOverLimit {
			return counted, nil
		}
		l.metrics.ConnectionsRefused.WithLabelValues(l.wire).Inc()
		if n == l.limit+1 { // said once until there are fewer; the metric counts
			l.logger.Warn("connections are refused, there are too many", "wire", l.wire, "limit", l.limit)
		}
		if l.tells && n <= l.limit+spareConnections {
			return counted, nil
		}
		_ = counted.Close() // it was never used
	}
}

type countedConn struct {
	net.Conn

	listener    *limitedListener
	isOverLimit bool
	once        sync.Once
}

// Close closes the connection and gives its place free.
func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.listener.open.Add(-1)
		c.listener.metrics.Connections.WithLabelValues(c.listener.wire).Dec()
	})
	return c.Conn.Close()
}
