package admission

import (
	"container/list"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// Conn is a connection of a client.
type Conn struct {
	net.Conn

	controller *Controller
	wire       string
	closeIdle  func() // closes it while no call is under way

	hasFrames     atomic.Bool               // a frame came; over gRPC only
	writeDeadline atomic.Pointer[time.Time] // an earlier end of writing that the server has set

	// What follows is guarded by the mutex of the Door.
	isExcess       bool // one too many: there to be told so
	isReleased     bool // counted no longer
	closeAfterWait bool // its waits were ended because it is to make room
	isUsed         bool // a call came
	isLongLived    bool // is counted as staying
	calls          int  // under way
	reading        int  // of those, whose request did not come whole
	streams        int  // of those, streams, which stay as long as the client likes

	waits   list.List  // of *wait: of those, calls that wait
	list    *list.List // of the Door, in which it stands; nil: in none
	element *list.Element
	since   time.Time // it stands there
}

// IsOver reports whether the connection is one too many, whose requests are answered THROTTLED.
func (c *Conn) IsExcess() bool {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	return c.isExcess
}

// Close closes the connection and gives its place free.
func (c *Conn) Close() error {
	c.controller.mu.Lock()
	c.release()
	c.controller.mu.Unlock()
	return c.Conn.Close()
}

// writePiece is how much a client must read in one patience, and a second more for each step.
const writeChunk = 1 << 20

// Write writes to the connection. A client that reads nothing for too long is cut off.
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+writeChunk)]
		_ = c.Conn.SetWriteDeadline(
			c.earlierDeadline(time.Now().Add(timeoutFor(c.controller.readTimeout, int64(len(piece))))),
		) // it is open, or the write fails
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

// SetWriteDeadline sets until when writes may last, where that is earlier than a client has anyway.
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

// leave stops counting the connection. The caller holds the mutex, as for all that follows.
func (c *Conn) release() {
	if c.isReleased {
		return
	}
	c.isReleased = true
	c.moveTo(nil)
	if c.isLongLived {
		c.isLongLived = false
		c.controller.longLived--
	}
	if c.isExcess {
		c.controller.excess--
	} else {
		c.controller.open--
	}
	c.controller.metrics.Connections.WithLabelValues(c.wire).Dec()
}

// settle puts the connection at the end of a line, and takes it out of the one it stands in.
func (c *Conn) moveTo(line *list.List) {
	if c.list != nil {
		c.list.Remove(c.element)
	}
	c.list, c.element, c.since = line, nil, time.Now()
	if line != nil {
		c.element = line.PushBack(c)
	}
}

// move puts the connection where it belongs after its calls have changed.
func (c *Conn) classify() {
	if c.isReleased || c.isExcess {
		return
	}
	d := c.controller
	stays := c.calls > 0 && c.waits.Len()+c.streams >= c.calls
	if stays != c.isLongLived {
		c.isLongLived = stays
		if stays {
			d.longLived++
		} else {
			d.longLived--
		}
	}
	var line *list.List
	switch {
	case c.calls == 0 && !c.isUsed:
		line = &d.unused
	case c.calls == 0:
		line = &d.idle
	case stays && c.waits.Len() > 0:
		line = &d.waiting
	case c.calls > 0 && c.reading >= c.calls && c.streams == 0: // a stream may be silent
		line = &d.reading
	}
	if line != c.list {
		c.moveTo(line)
	}
}

// begin counts a call.
func (c *Conn) callStarted() {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	c.calls++
	c.isUsed = true
	c.reading++
	if c.wire == obs.HTTP {
		c.reading = 1 // also when the body of the last one was never read
	}
	c.classify()
}

// came notes that the request of a call is there, or will not come.
func (c *Conn) requestRead() {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	c.reading = max(c.reading-1, 0)
	c.classify()
}

// end counts a call no longer.
func (c *Conn) callEnded() {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	c.calls--
	c.classify()
}

// wait is a call that waits for messages.
type wait struct {
	ended   chan struct{}
	element *list.Element
	since   time.Time
	isEnded bool
}

func (c *Conn) endOldestWait() {
	w := c.waits.Remove(c.waits.Front()).(*wait)
	w.isEnded = true
	close(w.ended)
	c.controller.metrics.WaitsEnded.Inc()
}

// hold makes room for one connection more that stays. It reports false when there is none.
func (c *Conn) canStay() bool {
	d := c.controller
	wouldStay := c.calls == 0 || c.waits.Len()+c.streams+1 >= c.calls
	if c.isExcess || c.isLongLived || !wouldStay || d.longLived < d.maxConnections-d.reserve {
		return true
	}
	return d.endOldestWaits()
}

// beginWait is semantics.Waits for a call of the connection. ended says that the wait was ended, and whether the
// connection is to go.
func (c *Conn) beginWait() (enough <-chan struct{}, end func() (mustGo bool), err error) {
	d := c.controller
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := c.canStay()
	if ok && c.waits.Len() >= maxConnWaits {
		if ok = time.Since(c.waits.Front().Value.(*wait).since) >= minWait; ok {
			c.endOldestWait()
		}
	}
	if !ok {
		d.refusals.note("limit", d.maxConnections)
		return nil, nil, errTooManyWaits()
	}
	w := &wait{ended: make(chan struct{}), since: time.Now()}
	w.element = c.waits.PushBack(w)
	c.closeAfterWait = false
	c.classify()
	return w.ended, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !w.isEnded {
			c.waits.Remove(w.element)
			c.classify()
		}
		return c.closeAfterWait
	}, nil
}

// beginStream counts a call that is under way already as a stream.
func (c *Conn) beginStream() (end func(), err error) {
	d := c.controller
	d.mu.Lock()
	defer d.mu.Unlock()
	if !c.canStay() {
		d.refusals.note("limit", d.maxConnections)
		return nil, errTooManyWaits()
	}
	c.streams++
	c.classify()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		c.streams--
		c.classify()
	}, nil
}
