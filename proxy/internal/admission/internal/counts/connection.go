package counts

import (
	"container/list"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// Connection is one of the Connections.
type Connection struct {
	Wire string // obs.HTTP or obs.GRPC

	all                    *Connections
	closeIdle, closeUnused func()

	isExcess       bool // over the limit: its requests are answered THROTTLED
	isReleased     bool // no longer counted
	closeAfterWait bool // its waits were ended to free the connection
	isUsed         bool // has carried a call
	isLongLived    bool // counted in all.longLived
	calls          int  // in flight
	reading        int  // of those, calls whose request has not fully arrived
	streams        int  // of those, streams, which may last forever

	waits   list.List  // of *Wait: of those, calls that wait for messages
	list    *list.List // of all that contains the Connection, or nil
	element *list.Element
	since   time.Time // when it was added to list
}

// NewConnection returns a connection that Admit is to count. closeIdle closes it for another one, while no call whose
// request has arrived is in flight. closeUnused closes it when the sidecar stops, unless a call is about to begin; nil
// for HTTP, whose server does that.
func NewConnection(all *Connections, wire string, closeIdle, closeUnused func()) *Connection {
	return &Connection{Wire: wire, all: all, closeIdle: closeIdle, closeUnused: closeUnused}
}

// IsExcess reports whether the connection is over the limit, so that its requests are answered THROTTLED.
func (c *Connection) IsExcess() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.isExcess
}

// Release stops counting the connection.
func (c *Connection) Release() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.release()
}

// CallStarted counts a call.
func (c *Connection) CallStarted() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.calls++
	c.isUsed = true
	c.reading++
	if c.Wire == obs.HTTP {
		c.reading = 1 // even if the body of the previous request was never read
	}
	c.classify()
}

// CallArrived counts a call whose request has arrived.
func (c *Connection) CallArrived() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.calls++
	c.isUsed = true
	c.classify()
}

// RequestRead notes that the request of a call has arrived, or will not arrive.
func (c *Connection) RequestRead() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.reading = max(c.reading-1, 0)
	c.classify()
}

// CallEnded stops counting a call.
func (c *Connection) CallEnded() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.calls--
	c.classify()
}

// release stops counting the connection, unless it is not counted any more.
func (c *Connection) release() {
	if c.isReleased {
		return
	}
	c.isReleased = true
	c.moveTo(nil)
	if c.isLongLived {
		c.isLongLived = false
		c.all.longLived--
	}
	if c.isExcess {
		c.all.excess--
	} else {
		c.all.open--
	}
	c.all.metrics.Connections.WithLabelValues(c.Wire).Dec()
}

// moveTo removes the connection from its list and appends it to another one. nil means none.
func (c *Connection) moveTo(to *list.List) {
	if c.list != nil {
		c.list.Remove(c.element)
	}
	c.list, c.element, c.since = to, nil, time.Now()
	if to != nil {
		c.element = to.PushBack(c)
	}
}

// classify moves the connection to the list that fits its calls.
func (c *Connection) classify() {
	if c.isReleased || c.isExcess {
		return
	}
	isLongLived := c.calls > 0 && c.waits.Len()+c.streams >= c.calls
	if isLongLived != c.isLongLived {
		c.isLongLived = isLongLived
		if isLongLived {
			c.all.longLived++
		} else {
			c.all.longLived--
		}
	}
	var to *list.List
	switch {
	case c.calls == 0 && !c.isUsed:
		to = &c.all.unused
	case c.calls == 0:
		to = &c.all.idle
	case isLongLived && c.waits.Len() > 0:
		to = &c.all.waiting
	case c.calls > 0 && c.reading >= c.calls && c.streams == 0: // a stream may send nothing for long
		to = &c.all.reading
	}
	if to != c.list {
		c.moveTo(to)
	}
}
