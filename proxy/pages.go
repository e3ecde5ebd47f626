package proxy

import (
	"net"
	"slices"
	"sync"
)

// maxPageConnections limits the connections to the admin address and to the probe address, each. A client of the probe
// address needs to prove nothing, and must not use the memory of the pod.
const maxPageConnections = 64

// newest is a listener that keeps at most a number of connections open: one more closes the oldest. So a probe of the
// kubelet, which makes a connection for each, is answered however many connections others hold.
type newest struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*pageConn // the oldest first
}

// pageConn is a connection of a newest.
type pageConn struct {
	net.Conn
	of *newest
}

// Accept returns the next connection.
func (l *newest) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &pageConn{conn, l}
	if oldest := l.add(c); oldest != nil {
		_ = oldest.Conn.Close() // its server notices
	}
	return c, nil
}

// add adds a connection, and removes and returns the oldest if there are too many.
func (l *newest) add(c *pageConn) (oldest *pageConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == l.most {
		oldest = l.open[0]
		l.open = slices.Delete(l.open, 0, 1)
	}
	l.open = append(l.open, c)
	return oldest
}

// Close closes the connection.
func (c *pageConn) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}

func (l *newest) remove(c *pageConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.open, c); at >= 0 {
		l.open = slices.Delete(l.open, at, at+1)
	}
}
