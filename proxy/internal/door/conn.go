package door

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

	door    *Door
	wire    string
	dismiss func() // closes it while no call is under way

	hasBegun atomic.Bool               // a frame came; over gRPC only
	writeBy  atomic.Pointer[time.Time] // an earlier end of writing that the server has set

	// What follows is guarded by the mutex of the Door.
	isOver  bool // one too many: there to be told so
	isGone  bool // counted no longer
	mustGo  bool // its waits were ended because it is to make room
	isUsed  bool // a call came
	stays   bool // is counted as staying
	calls   int  // under way
	coming  int  // of those, whose request did not come whole
	streams int  // of those, streams, which stay as long as the client likes

	waits list.List  // of *wait: of those, calls that wait
	line  *list.List // of the Door, in which it stands; nil: in none
	place *list.Element
	since time.Time // it stands there
}

// IsOver reports whether the connection is one too many, whose requests are answered THROTTLED.
func (c *Conn) IsOver() bool {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	return c.isOver
}

// Close closes the connection and gives its place free.
func (c *Conn) Close() error {
	c.door.mu.Lock()
	c.leave()
	c.door.mu.Unlock()
	return c.Conn.Close()
}

// writePiece is how much a client must read in one patience, and a second more for each step.
const writePiece = 1 << 20

// Write writes to the connection. A client that reads nothing for too long is cut off.
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+writePiece)]
		_ = c.Conn.SetWriteDeadline(
			c.earlier(time.Now().Add(patienceFor(c.door.patience, int64(len(piece))))),
		) // it is open, or the write fails
		more, err := c.Conn.Write(piece)
		n += more
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.door.metrics.AnswersLate.Inc()
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// SetWriteDeadline sets until when writes may last, where that is earlier than a client has anyway.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.Store(&t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *Conn) earlier(deadline time.Time) time.Time {
	if by := c.writeBy.Load(); by != nil && !by.IsZero() && by.Before(deadline) {
		return *by
	}
	return deadline
}

// leave stops counting the connection. The caller holds the mutex, as for all that follows.
func (c *Conn) leave() {
	if c.isGone {
		return
	}
	c.isGone = true
	c.settle(nil)
	if c.stays {
		c.stays = false
		c.door.staying--
	}
	if c.isOver {
		c.door.leftOver--
	} else {
		c.door.open--
	}
	c.door.metrics.Connections.WithLabelValues(c.wire).Dec()
}

// settle puts the connection at the end of a line, and takes it out of the one it stands in.
func (c *Conn) settle(line *list.List) {
	if c.line != nil {
		c.line.Remove(c.place)
	}
	c.line, c.place, c.since = line, nil, time.Now()
	if line != nil {
		c.place = line.PushBack(c)
	}
}

// move puts the connection where it belongs after its calls have changed.
func (c *Conn) move() {
	if c.isGone || c.isOver {
		return
	}
	d := c.door
	stays := c.calls > 0 && c.waits.Len()+c.streams >= c.calls
	if stays != c.stays {
		c.stays = stays
		if stays {
			d.staying++
		} else {
			d.staying--
		}
	}
	var line *list.List
	switch {
	case c.calls == 0 && !c.isUsed:
		line = &d.fresh
	case c.calls == 0:
		line = &d.idle
	case stays && c.waits.Len() > 0:
		line = &d.waiting
	case c.calls > 0 && c.coming >= c.calls && c.streams == 0: // a stream may be silent
		line = &d.coming
	}
	if line != c.line {
		c.settle(line)
	}
}

// begin counts a call.
func (c *Conn) begin() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.calls++
	c.isUsed = true
	c.coming++
	if c.wire == obs.HTTP {
		c.coming = 1 // also when the body of the last one was never read
	}
	c.move()
}

// came notes that the request of a call is there, or will not come.
func (c *Conn) came() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.coming = max(c.coming-1, 0)
	c.move()
}

// end counts a call no longer.
func (c *Conn) end() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.calls--
	c.move()
}

// wait is a call that waits for messages.
type wait struct {
	enough  chan struct{}
	place   *list.Element
	since   time.Time
	isEnded bool
}

func (c *Conn) endWait() {
	w := c.waits.Remove(c.waits.Front()).(*wait)
	w.isEnded = true
	close(w.enough)
	c.door.metrics.WaitsEnded.Inc()
}

// hold makes room for one connection more that stays. It reports false when there is none.
func (c *Conn) hold() bool {
	d := c.door
	wouldStay := c.calls == 0 || c.waits.Len()+c.streams+1 >= c.calls
	if c.isOver || c.stays || !wouldStay || d.staying < d.limit-d.keep {
		return true
	}
	return d.endOldest()
}

// beginWait is semantics.Waits for a call of the connection. ended says that the wait was ended, and whether the
// connection is to go.
func (c *Conn) beginWait() (enough <-chan struct{}, end func() (mustGo bool), err error) {
	d := c.door
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := c.hold()
	if ok && c.waits.Len() >= connWaits {
		if ok = time.Since(c.waits.Front().Value.(*wait).since) >= leastWait; ok {
			c.endWait()
		}
	}
	if !ok {
		d.refusals.note("limit", d.limit)
		return nil, nil, errNoPlace()
	}
	w := &wait{enough: make(chan struct{}), since: time.Now()}
	w.place = c.waits.PushBack(w)
	c.mustGo = false
	c.move()
	return w.enough, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !w.isEnded {
			c.waits.Remove(w.place)
			c.move()
		}
		return c.mustGo
	}, nil
}

// beginStream counts a call that is under way already as a stream.
func (c *Conn) beginStream() (end func(), err error) {
	d := c.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if !c.hold() {
		d.refusals.note("limit", d.limit)
		return nil, errNoPlace()
	}
	c.streams++
	c.move()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		c.streams--
		c.move()
	}, nil
}
