package semantics

import (
	"context"
	"sync"
	"sync/atomic"
)

// requests are the requests of a Broker that wait, at a reply desk for each reply queue. One mutex is for all desks: it is held for
// moments only.
type requests struct {
	broker  *Broker
	session string // of this Broker, in every reply queue (RR-4)
	orphans atomic.Int64

	mu     sync.Mutex
	desks  map[string]*replyDesk // by folded path
	closed bool
	work   sync.WaitGroup
}

func (r *requests) init(b *Broker) {
	r.broker, r.session, r.desks = b, NewRandomUUID().String(), map[string]*replyDesk{}
}

// asker is one request that waits. It stands among the askers of its desk until its outcome is put down, or it leaves.
type asker struct {
	desk    *replyDesk
	key     string
	outcome chan outcome // has room for one

	isSent bool // under the mutex: it waits for its reply and not for the session any more
}

// outcome is what a request came to: the reply or a failure.
type outcome struct {
	delivery *Delivery
	err      error
}

// enter makes a request wait at the desk of a reply queue, which is opened if need be. ready is closed while the session is held.
func (r *requests) enter(ctx context.Context, path, key string) (a *asker, ready <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, r.broker.refuseIfDraining()
	}
	d := r.desks[Fold(path)]
	if d == nil {
		d = &replyDesk{
			requests: r, path: path, ready: make(chan struct{}), askers: map[string]*asker{}, idle: make(chan struct{}, 1),
			failed: make(chan struct{}, 1),
		}
		r.desks[Fold(path)] = d
		r.work.Go(func() { d.run(context.WithoutCancel(ctx)) })
	}
	if d.askers[key] != nil {
		return nil, nil, Errorf(InvalidOperation, "a request to reply to %q with the correlation id %q waits already", path, cut(key)).
			With(DetailEntity, path)
	}
	a = &asker{desk: d, key: key, outcome: make(chan outcome, 1)}
	d.askers[key] = a
	return a, d.ready, nil
}

// close waits for the goroutines, which end because the Broker drains.
func (r *requests) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
}

// wait gives the outcome. It gives neither a Delivery nor an error when ready is closed first.
func (a *asker) wait(ctx context.Context, ready <-chan struct{}) (*Delivery, error) {
	var err error
	select {
	case <-ready:
		return nil, nil //nolint:nilnil // there is no outcome yet
	case o := <-a.outcome:
		return o.delivery, o.err
	case <-ctx.Done():
		err = cancelled(ctx)
	case <-a.desk.requests.broker.draining:
		err = a.desk.requests.broker.refuseIfDraining()
	}
	if a.leave() {
		return nil, err
	}
	o := <-a.outcome // it came at the last moment
	return o.delivery, o.err
}

// send notes that the request is about to be sent: from now on only a failure that lasts ends it.
func (a *asker) send() {
	a.desk.requests.mu.Lock()
	defer a.desk.requests.mu.Unlock()
	a.isSent = true
}

// leave makes the request wait no longer. It reports false when its outcome is there.
func (a *asker) leave() bool {
	d := a.desk
	d.requests.mu.Lock()
	defer d.requests.mu.Unlock()
	if d.askers[a.key] != a {
		return false
	}
	d.remove(a)
	return true
}
