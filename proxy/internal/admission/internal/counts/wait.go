package counts

import (
	"container/list"
	"time"
)

// minWait is how long a wait lasts at least before it is ended in favor of another call.
const minWait = time.Second

// Wait is a call that waits for messages.
type Wait struct {
	Ended chan struct{} // closed when the wait must end early

	conn    *Connection
	element *list.Element
	since   time.Time
	isEnded bool
}

// BeginWait counts a wait of a call, which is counted already. It returns nil if too many calls wait. The caller must
// call End.
func (c *Connection) BeginWait() *Wait {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.canStay() {
		return nil
	}
	if c.waits.Len() >= c.all.maxConnWaits {
		if time.Since(c.waits.Front().Value.(*Wait).since) < minWait {
			return nil
		}
		c.endOldestWait()
	}
	w := &Wait{Ended: make(chan struct{}), conn: c, since: time.Now()}
	w.element = c.waits.PushBack(w)
	c.closeAfterWait = false
	c.classify()
	return w
}

// End stops counting the wait, and reports whether the connection must be closed after the response.
func (w *Wait) End() (mustClose bool) {
	w.conn.all.mu.Lock()
	defer w.conn.all.mu.Unlock()
	if !w.isEnded {
		w.conn.waits.Remove(w.element)
		w.conn.classify()
	}
	return w.conn.closeAfterWait
}

// BeginStream counts a call, which is counted already, as a stream. It reports false if too many calls wait. Otherwise
// the caller must call EndStream.
func (c *Connection) BeginStream() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.canStay() {
		return false
	}
	c.streams++
	c.classify()
	return true
}

// EndStream stops counting a call as a stream.
func (c *Connection) EndStream() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.streams--
	c.classify()
}

// Streams returns how many calls are streams.
func (c *Connection) Streams() int {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.streams
}

// canStay reports whether one more long-lived connection is permitted. If necessary, it ends the oldest waits.
func (c *Connection) canStay() bool {
	wouldStay := c.calls == 0 || c.waits.Len()+c.streams+1 >= c.calls
	if c.isExcess || c.isLongLived || !wouldStay || c.all.longLived < c.all.limit-c.all.reserve {
		return true
	}
	return c.all.endOldestWaits()
}

// endOldestWait ends the wait of the connection that began first.
func (c *Connection) endOldestWait() {
	w := c.waits.Remove(c.waits.Front()).(*Wait)
	w.isEnded = true
	close(w.Ended)
	c.all.metrics.WaitsEnded.Inc()
}
