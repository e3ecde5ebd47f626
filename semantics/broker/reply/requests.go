package reply

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Requests are the requests of one broker that wait, with a consumer for each reply queue.
type Requests struct {
	broker  Broker
	session string // of this broker, in every reply queue (RR-4)
	orphans atomic.Int64

	mu        sync.Mutex           // before that of a consumer, if both are locked
	consumers map[string]*consumer // by folded path
	closed    bool
	work      sync.WaitGroup
}

// New makes Requests over a broker. It starts nothing.
func New(broker Broker) *Requests {
	return &Requests{broker: broker, session: semantics.NewRandomUUID().String(), consumers: map[string]*consumer{}}
}

func (r *Requests) isDraining() bool { return r.draining() != nil }

// draining is the error of a request while the broker drains, else nil.
func (r *Requests) draining() error {
	select {
	case <-r.broker.Draining():
		return semantics.Draining()
	default:
		return nil
	}
}

// call is one request that waits. It stands among the calls of its consumer until its outcome is put down, or it
// leaves.
type call struct {
	consumer *consumer
	key      string
	outcome  chan outcome // buffer of one

	isSent bool // under the consumer's mutex: it waits for its reply and not for the session any more
}

// outcome is what a request came to: the reply or a failure.
type outcome struct {
	delivery *delivery.Delivery
	err      error
}

// enter makes a request wait at the consumer of a reply queue, which is opened if need be. ready is closed while the
// session is held.
func (r *Requests) enter(ctx context.Context, path, key string) (a *call, ready <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, r.draining()
	}
	c := r.consumers[semantics.Fold(path)]
	if c == nil {
		c = &consumer{
			requests: r, path: path, ready: make(chan struct{}), calls: map[string]*call{},
			idle:   make(chan struct{}, 1),
			failed: make(chan struct{}, 1),
		}
		r.consumers[semantics.Fold(path)] = c
		r.work.Go(func() { c.run(context.WithoutCancel(ctx)) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] != nil {
		return nil, nil, semantics.Errorf(semantics.InvalidOperation,
			"a request with the correlation id %[2]q waits for its reply at %[1]q already; use another correlation id",
			path, semantics.Shorten(key)).
			With(semantics.DetailEntity, path)
	}
	a = &call{consumer: c, key: key, outcome: make(chan outcome, 1)}
	c.calls[key] = a
	return a, c.ready, nil
}

// Close waits for the goroutines, which end because the Broker drains.
func (r *Requests) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
}

// wait returns the outcome. It returns neither a Delivery nor an error when ready is closed first.
func (a *call) wait(ctx context.Context, ready <-chan struct{}) (*delivery.Delivery, error) {
	var err error
	select {
	case <-ready:
		return nil, nil //nolint:nilnil // there is no outcome yet
	case o := <-a.outcome:
		return o.delivery, o.err
	case <-ctx.Done():
		err = semantics.CancelledBy(ctx)
	case <-a.consumer.requests.broker.Draining():
		err = semantics.Draining()
	}
	if a.leave() {
		return nil, err
	}
	o := <-a.outcome // it came at the last moment
	return o.delivery, o.err
}

// send notes that the request is about to be sent: from now on only a failure that lasts ends it.
func (a *call) send() {
	a.consumer.mu.Lock()
	defer a.consumer.mu.Unlock()
	a.isSent = true
}

// leave makes the request wait no longer. It reports false when its outcome is there.
func (a *call) leave() bool {
	c := a.consumer
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[a.key] != a {
		return false
	}
	c.removeLocked(a)
	return true
}
