package counts

import (
	"container/list"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
)

const (
	reserveShare = 10          // 1/reserveShare of the connections is for calls that do not wait (QUOTA-5)
	maxExcess    = 100         // HTTP connections over the limit that stay open to be answered THROTTLED
	unusedGrace  = time.Second // an unused connection is not closed earlier
)

// Connections are the connections of a sidecar, over HTTP and gRPC together. Its methods may be called concurrently.
type Connections struct {
	limit, reserve int
	maxConnWaits   int // waits of one connection
	metrics        *obs.Metrics

	mu         sync.Mutex // guards what follows, and the fields of each Connection and Wait that change
	open       int        // admitted connections
	longLived  int        // of those, connections whose calls all wait or are streams
	idle       list.List  // of *Connection without a call in flight, the longest idle first
	unused     list.List  // of *Connection that have not carried a call, oldest first
	reading    list.List  // of *Connection none of whose requests has fully arrived, oldest first
	waiting    list.List  // of *Connection all of whose calls wait, the longest wait first
	excess     int        // open connections over the limit
	isStopping bool       // gRPC connections are refused
}

// New returns Connections of which limit may be open, each with at most maxConnWaits waits.
func New(limit, maxConnWaits int, metrics *obs.Metrics) *Connections {
	return &Connections{
		limit: limit, reserve: max(limit/reserveShare, 1), maxConnWaits: maxConnWaits, metrics: metrics,
	}
}

// Admit counts a new connection and reports whether it may stay open. With mayRespond, some connections over the limit
// stay open too, so that their requests are answered THROTTLED. isRefused reports whether it is over the limit, except
// while the sidecar stops. If closeOther is not nil, the caller must call it: another connection makes way.
func (all *Connections) Admit(c *Connection, mayRespond bool) (mayStay, isRefused bool, closeOther func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open++
	closeOther = all.evict()
	isExcess := all.open > all.limit || all.isStopping && c.Wire == obs.GRPC
	switch {
	case !isExcess:
		c.moveTo(&all.unused)
	case !mayRespond || all.excess >= maxExcess:
		all.open--
		c.isReleased = true
	default:
		all.open-- // silent ones must not shut out other clients
		all.excess++
		c.isExcess = true
	}
	return !c.isReleased, isExcess && !all.isStopping, closeOther
}

// Stop refuses new gRPC connections, and returns the functions that close the unused ones.
func (all *Connections) Stop() (closeUnused []func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.isStopping = true
	for e := all.unused.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Connection); c.Wire == obs.GRPC {
			closeUnused = append(closeUnused, c.closeUnused)
		}
	}
	return closeUnused
}

// evict keeps connections free for calls that do not wait. It returns the function that closes the connection that
// makes way, or nil.
func (all *Connections) evict() (closeIdle func()) {
	if all.open <= all.limit-all.reserve {
		return nil
	}
	for _, conns := range []*list.List{&all.idle, &all.unused, &all.reading} {
		if first := conns.Front(); first != nil {
			c := first.Value.(*Connection)
			if conns != &all.idle && time.Since(c.since) < unusedGrace {
				continue
			}
			c.release()
			all.metrics.ConnectionsIdleEnded.WithLabelValues(c.Wire).Inc()
			return c.closeIdle
		}
	}
	if all.open > all.limit-all.reserve/2 {
		all.endOldestWaits()
	}
	return nil
}

// endOldestWaits ends the waits of the connection that has waited longest. It reports false if no connection has waited
// for minWait.
func (all *Connections) endOldestWaits() bool {
	first := all.waiting.Front()
	if first == nil || time.Since(first.Value.(*Connection).since) < minWait {
		return false
	}
	c := first.Value.(*Connection)
	for c.waits.Len() > 0 {
		c.endOldestWait()
	}
	c.closeAfterWait = true
	c.classify()
	return true
}
