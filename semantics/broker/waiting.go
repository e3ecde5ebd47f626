package broker

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// attempt is what a call in a waiting list does again and again until it has what it waits for.
type attempt struct {
	// try looks once. recheck is as Batch.RecheckAfter.
	try func(ctx context.Context, register semantics.Register) (found bool, recheck time.Duration, err error)
	// waits reports which failures only need waiting. Nil: none.
	waits func(err error) bool
	// enough, when closed, ends the wait as if its time had expired. Nil: never.
	enough <-chan struct{}
}

func (a attempt) mayWait(err error) bool { return a.waits != nil && a.waits(err) }

// tryOrWait tries once without any preparation, which is all a busy source needs, and only then joins the waiting list.
func (b *Broker) tryOrWait(ctx context.Context, source semantics.Source, maxWait time.Duration, a attempt) error {
	deadline := time.Now().Add(maxWait)
	looks := maxWait == 0 || !b.waitingLists.isOpen(source)
	for looks {
		found, recheck, err := a.try(ctx, b.waitingLists.registerFor(source))
		switch {
		case found, err != nil && !a.mayWait(err):
			return err
		case err == nil && recheck == 0: // more was due than one call may process: look again
		case maxWait == 0: // there is nothing now
			return err
		default:
			looks = false
		}
	}
	list, err := b.waitingLists.enter(ctx, source)
	if err != nil {
		return err
	}
	defer b.waitingLists.leave(ctx, list)
	b.uses.begin(ctx, source.Path)
	defer b.uses.end(source.Path)
	if maxWait > 0 {
		enough, end, err := semantics.BeginWait(ctx)
		if err != nil {
			return err
		}
		defer end()
		a.enough = enough
	}
	return list.wait(ctx, b.draining, deadline, a)
}

// watcher is the part of a Store that waiting takes.
type watcher interface {
	Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error)
	PassOn(ctx context.Context, source semantics.Source) error
}

// waitingLists are the waiting lists of a Broker, one for each source that receives wait on.
//
// A receive that finds nothing joins the waiting list of its source, in order of arrival. A wake-up from the store
// calls as many waiters as messages arrived; they look again through the store, which joins their calls into one. A
// waiter that finds nothing waits again at its old place (RECV-10). The recheck timer of the waiting list makes up for
// a lost wake-up.
type waitingLists struct {
	store  watcher
	mu     sync.Mutex
	open   map[semantics.Source]*waitingList
	closed bool
	work   sync.WaitGroup
}

func (lists *waitingLists) init(store watcher) {
	lists.store = store
	lists.open = map[semantics.Source]*waitingList{}
}

// registerFor returns how a first look must register: others may be waiting on the source already.
func (lists *waitingLists) registerFor(source semantics.Source) semantics.Register {
	lists.mu.Lock()
	w := lists.open[source.Fold()]
	lists.mu.Unlock()
	if w != nil && w.waiting() > 0 {
		return semantics.RegisterAlways
	}
	return semantics.RegisterNever
}

// isOpen reports whether the waiting list of source is open, so that its subscription stands or is on its way.
func (lists *waitingLists) isOpen(source semantics.Source) bool {
	lists.mu.Lock()
	defer lists.mu.Unlock()
	return lists.open[source.Fold()] != nil
}

// enter joins or opens the waiting list of source and blocks until its subscription stands.
func (lists *waitingLists) enter(ctx context.Context, source semantics.Source) (*waitingList, error) {
	key := source.Fold()
	lists.mu.Lock()
	if lists.closed {
		lists.mu.Unlock()
		return nil, semantics.Errorf(semantics.StoreUnavailable, "this sidecar has stopped; use another one").
			With(semantics.DetailCause, semantics.CauseDraining)
	}
	w := lists.open[key]
	if w == nil {
		w = newWaitingList(source)
		lists.open[key] = w
		lists.work.Add(1)
		go lists.run(context.WithoutCancel(ctx), w)
	}
	isFull := !w.join()
	lists.mu.Unlock()
	if isFull {
		return nil, semantics.Errorf(semantics.Throttled,
			"%d receives wait on %s already; use another sidecar or fewer waiting receives", MaxWaiting, source).
			With(semantics.DetailLimit, strconv.Itoa(MaxWaiting))
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		lists.leave(ctx, w)
		return nil, semantics.CancelledBy(ctx)
	}
	if w.failed != nil {
		lists.leave(ctx, w)
		return nil, w.failed
	}
	return w, nil
}

// run owns the waiting list's subscription from the first receive to the last.
func (lists *waitingLists) run(ctx context.Context, w *waitingList) {
	defer lists.work.Done()
	subscribe, cancel := context.WithTimeout(ctx, delivery.SettleTimeout)
	w.watch, w.failed = lists.store.Watch(subscribe, w.source)
	cancel()
	if w.failed != nil {
		lists.mu.Lock() // first out of the way, so that the receive after the failure tries again
		if lists.open[w.source.Fold()] == w {
			delete(lists.open, w.source.Fold())
			w.close()
		}
		lists.mu.Unlock()
		close(w.ready)
		return
	}
	close(w.ready)
	defer w.watch.Close()
	for {
		select {
		case n := <-w.watch.C():
			if !w.wake(n) {
				lists.passOn(ctx, w)
			}
		case <-w.done:
			return
		}
	}
}

// leave takes one receive out of the waiting list and closes the waiting list when it stays empty.
func (lists *waitingLists) leave(ctx context.Context, w *waitingList) {
	if missed := w.leave(func() { lists.closeIfEmpty(w) }); missed {
		lists.passOn(context.WithoutCancel(ctx), w)
	}
}

// passOn passes a wake-up without a waiter here to the next sidecar. After a failure the recheck timers of the other
// sidecars find the messages.
func (lists *waitingLists) passOn(ctx context.Context, w *waitingList) {
	ctx, cancel := context.WithTimeout(ctx, delivery.SettleTimeout)
	defer cancel()
	_ = lists.store.PassOn(ctx, w.source)
}

// forget closes the waiting list of a source that will never have anything again, unless a receive is in it.
func (lists *waitingLists) forget(source semantics.Source) {
	lists.mu.Lock()
	w := lists.open[source.Fold()]
	lists.mu.Unlock()
	if w != nil {
		lists.closeIfEmpty(w)
	}
}

func (lists *waitingLists) closeIfEmpty(w *waitingList) {
	lists.mu.Lock()
	defer lists.mu.Unlock()
	if lists.open[w.source.Fold()] == w && w.closeIfEmpty() {
		delete(lists.open, w.source.Fold())
	}
}

// close ends all waiting lists and waits for their goroutines. Receives still inside see the Broker's drain.
func (lists *waitingLists) close() {
	lists.mu.Lock()
	lists.closed = true
	for key, w := range lists.open {
		delete(lists.open, key)
		w.close()
	}
	lists.mu.Unlock()
	lists.work.Wait()
}
