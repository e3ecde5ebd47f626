package delivery

import (
	"context"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// Removals counts, by session lock, the messages in ReceiveAndDelete mode that are on their way to the client: they are
// removed when it has them (RECV-7). The client may know of a message a moment before it is removed. What it does with
// the session next has to find the message gone: else a close would make it available again.
type Removals struct {
	mu       sync.Mutex
	underWay map[semantics.LockToken]*removal
}

type removal struct {
	messages int
	over     chan struct{} // closed when there are none
}

// NewRemovals makes the count for one broker.
func NewRemovals() *Removals { return &Removals{underWay: map[semantics.LockToken]*removal{}} }

func (r *Removals) begin(d *Delivery) {
	if !d.removesInSession() || len(d.tokens) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.underWay[d.source.SessionLock]
	if u == nil {
		u = &removal{over: make(chan struct{})}
		r.underWay[d.source.SessionLock] = u
	}
	u.messages += len(d.tokens)
}

// end notes that n of the messages were removed, or given back, or that either failed.
func (r *Removals) end(d *Delivery, n int) {
	if !d.removesInSession() || n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.underWay[d.source.SessionLock]
	if u.messages -= n; u.messages == 0 {
		delete(r.underWay, d.source.SessionLock)
		close(u.over)
	}
}

// Await blocks until no message of the session is on its way. A client that is slow to take one makes itself wait, but
// not for ever.
func (r *Removals) Await(ctx context.Context, session semantics.LockToken) {
	r.mu.Lock()
	u := r.underWay[session]
	r.mu.Unlock()
	if u == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, SettleTimeout)
	defer cancel()
	select {
	case <-u.over:
	case <-ctx.Done():
	}
}

func (d *Delivery) removesInSession() bool {
	return d.mode == semantics.ReceiveAndDelete && !d.source.SessionLock.IsZero()
}
