package admission

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission/internal/counts"
)

// Conn is a client connection whose calls are counted.
type Conn struct {
	net.Conn

	controller    *Controller
	counts        *counts.Connection
	peer          func() *access.Peer
	writeDeadline atomic.Pointer[time.Time] // the one that the server has set
}

func (ctl *Controller) newConn(conn net.Conn) *Conn {
	return &Conn{
		Conn: conn, controller: ctl,
		peer: sync.OnceValue(func() *access.Peer { peer := access.PeerOf(conn); return &peer }),
	}
}

// Close closes the connection and stops counting it.
func (c *Conn) Close() error {
	c.counts.Release()
	return c.Conn.Close()
}

// writeChunk is how many bytes a client must read within the timeout for that size.
const writeChunk = 1 << 20

// Write writes to the connection. If the client does not read a chunk in time, Write fails with os.ErrDeadlineExceeded.
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+writeChunk)]
		deadline := time.Now().Add(timeoutFor(c.controller.readTimeout, int64(len(piece))))
		_ = c.Conn.SetWriteDeadline(c.earlierDeadline(deadline)) // if the connection is closed, Write fails
		more, err := c.Conn.Write(piece)
		n += more
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.controller.metrics.AnswersLate.Inc()
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// SetWriteDeadline sets a deadline for writes. Write uses it if it is earlier than its own.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeDeadline.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *Conn) earlierDeadline(deadline time.Time) time.Time {
	if by := c.writeDeadline.Load(); by != nil && !by.IsZero() && by.Before(deadline) {
		return *by
	}
	return deadline
}

// beginWait counts a wait. It returns THROTTLED if too many calls wait.
func (c *Conn) beginWait() (*counts.Wait, error) {
	if w := c.counts.BeginWait(); w != nil {
		return w, nil
	}
	return nil, c.controller.waitRefused()
}

// beginStream counts a call as a stream until end is called. It returns THROTTLED if too many calls wait.
func (c *Conn) beginStream() (end func(), err error) {
	if c.counts.BeginStream() {
		return c.counts.EndStream, nil
	}
	return nil, c.controller.waitRefused()
}
