package redisstore

import (
	"sync"
	"time"
)

// idleTime is how long a connection stays open that no call needs. With fewer connections in use, more sidecars share
// one Redis; a connection costs a call less than a millisecond to open.
const idleTime = time.Minute

// openConns are the connections of a Store to all servers. The client opens as many as its busiest moment needs, then
// uses the one that was used last, and never looks at the others. So they are closed here. The client itself refuses
// connections that were idle for the idle time, and this closes them only later: no call meets a connection that is
// being closed.
type openConns struct {
	idle time.Duration // ConnMaxIdleTime of the clients
	wait time.Duration // the longest that a call waits for an answer

	mu  sync.Mutex
	all map[*greetedConn]int // how often in a row a look found it unused
}

func newOpenConns(o Options) *openConns {
	return &openConns{idle: or(o.IdleTime, idleTime), wait: o.ReadTimeout, all: map[*greetedConn]int{}}
}

func (o *openConns) add(c *greetedConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[c] = 0
}

func (o *openConns) remove(c *greetedConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
}

// run closes connections that stay unused, until end is closed.
func (o *openConns) run(end <-chan struct{}) {
	every := o.idle / 2
	// A whole interval more than a call may take, since a connection may have been used just after a look.
	most := int((o.idle+o.wait)/every) + 2
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for _, unused := range o.look(most) {
				_ = unused.Close() // nothing can be lost: no call uses it
			}
		case <-end:
			return
		}
	}
}

// look returns the connections that this look and those before it have found unused, most times in a row.
func (o *openConns) look(most int) (unused []*greetedConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c, times := range o.all {
		if c.isUsed.Swap(false) {
			o.all[c] = 0
			continue
		}
		if o.all[c] = times + 1; times+1 >= most {
			unused = append(unused, c)
		}
	}
	return unused
}
