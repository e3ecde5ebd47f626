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

// Conn is a client connection whose calls are counted.
type Conn struct {
	net.Conn

	controller *Controller
	wire       string
	closeIdle  func() // closes the connection; called while no call is in flight

	hasFrames     atomic.Bool               // a frame has arrived; gRPC only
	writeDeadline atomic.Pointer[time.Time] // the one that the server has set

	// The fields below are guarded by controller.mu.
	isExcess       bool // over the limit: its requests are answered THROTTLED
	isReleased     bool // no longer counted
	closeAfterWait bool // its waits were ended to free the connection
	isUsed         bool // has carried a call
	isLongLived    bool // counted in controller.longLived
	calls          int  // in flight
	reading        int  // of those, calls whose request has not fully arrived
	streams        int  // of those, streams, which may last forever

	waits   list.List  // of *wait: of those, calls that wait for messages
	list    *list.List // of controller that contains the Conn, or nil
	element *list.Element
	since   time.Time // when it was added to list
}

// IsExcess reports whether the connection is over the limit, so that its requests are answered THROTTLED.
func (c *Conn) IsExcess() bool {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	return c.isExcess
}

// Close closes the connection and stops counting it.
func (c *Conn) Close() error {
	c.controller.mu.Lock()
	c.release()
	c.controller.mu.Unlock()
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

// release stops counting the connection. The caller holds controller.mu, as for all functions below.
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

// moveTo removes the connection from its list and appends it to another one. nil means none.
func (c *Conn) moveTo(to *list.List) {
	if c.list != nil {
		c.list.Remove(c.element)
	}
	c.list, c.element, c.since = to, nil, time.Now()
	if to != nil {
		c.element = to.PushBack(c)
	}
}

// classify moves the connection to the list that fits its calls.
func (c *Conn) classify() {
	if c.isReleased || c.isExcess {
		return
	}
	ctl := c.controller
	isLongLived := c.calls > 0 && c.waits.Len()+c.streams >= c.calls
	if isLongLived != c.isLongLived {
		c.isLongLived = isLongLived
		if isLongLived {
			ctl.longLived++
		} else {
			ctl.longLived--
		}
	}
	var to *list.List
	switch {
	case c.calls == 0 && !c.isUsed:
		to = &ctl.unused
	case c.calls == 0:
		to = &ctl.idle
	case isLongLived && c.waits.Len() > 0:
		to = &ctl.waiting
	case c.calls > 0 && c.reading >= c.calls && c.streams == 0: // a stream may send nothing for long
		to = &ctl.reading
	}
	if to != c.list {
		c.moveTo(to)
	}
}

// callStarted counts a call.
func (c *Conn) callStarted() {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	c.calls++
	c.isUsed = true
	c.reading++
	if c.wire == obs.HTTP {
		c.reading = 1 // even if the body of the previous request was never read
	}
	c.classify()
}

// requestRead notes that the request of a call has arrived, or will not arrive.
func (c *Conn) requestRead() {
	c.controller.mu.Lock()
	defer c.controller.mu.Unlock()
	c.reading = max(c.reading-1, 0)
	c.classify()
}

// callEnded stops counting a call.
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

// canStay reports whether one more long-lived connection is permitted. If necessary, it ends the oldest waits.
func (c *Conn) canStay() bool {
	ctl := c.controller
	wouldStay := c.calls == 0 || c.waits.Len()+c.streams+1 >= c.calls
	if c.isExcess || c.isLongLived || !wouldStay || ctl.longLived < ctl.maxConnections-ctl.reserve {
		return true
	}
	return ctl.endOldestWaits()
}

// beginWait counts a wait. The channel ended is closed when the wait must end early. end stops counting the wait and
// reports whether the connection must be closed after the response.
func (c *Conn) beginWait() (ended <-chan struct{}, end func() (mustClose bool), err error) {
	ctl := c.controller
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	ok := c.canStay()
	if ok && c.waits.Len() >= maxConnWaits {
		if ok = time.Since(c.waits.Front().Value.(*wait).since) >= minWait; ok {
			c.endOldestWait()
		}
	}
	if !ok {
		ctl.connectionLog.Warn("limit", ctl.maxConnections)
		return nil, nil, errTooManyWaits()
	}
	w := &wait{ended: make(chan struct{}), since: time.Now()}
	w.element = c.waits.PushBack(w)
	c.closeAfterWait = false
	c.classify()
	return w.ended, func() bool {
		ctl.mu.Lock()
		defer ctl.mu.Unlock()
		if !w.isEnded {
			c.waits.Remove(w.element)
			c.classify()
		}
		return c.closeAfterWait
	}, nil
}

// beginStream counts a call, which is counted already, as a stream. end stops counting it as one.
func (c *Conn) beginStream() (end func(), err error) {
	ctl := c.controller
	ctl.mu.Lock()
	defer ctl.mu.Unlock()
	if !c.canStay() {
		ctl.connectionLog.Warn("limit", ctl.maxConnections)
		return nil, errTooManyWaits()
	}
	c.streams++
	c.classify()
	return func() {
		ctl.mu.Lock()
		defer ctl.mu.Unlock()
		c.streams--
		c.classify()
	}, nil
}
