package broker

import (
	"container/list"
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

// MaxWaiting is the most receives that may wait on one source in one sidecar (QUOTA-4).
const MaxWaiting = 5000

// linger is how long a waiting list keeps its subscription after the last receive left, so that a client that
// polls in a loop does not subscribe again each time.
const linger = 30 * time.Second

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

type waitingList struct {
	source semantics.Source
	ready  chan struct{} // closed when the subscription stands or failed
	failed error
	watch  semantics.Watch

	mu      sync.Mutex
	users   int       // receives inside, waiting or on their way to the store
	waiters list.List // of *waiter, in order of arrival
	arrived uint64    // receives that have ever begun to wait
	pending int       // wake-ups that found no receive waiting while receives were on their way
	recheck *time.Timer
	isArmed bool // recheck runs
	linger  *time.Timer
	isOver  bool          // the waiting list has closed: no timer starts any more
	done    chan struct{} // closed when the waiting list closes
}

type waiter struct {
	arrival  uint64
	called   chan struct{}
	isCalled bool
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
		w = &waitingList{source: source, ready: make(chan struct{}), done: make(chan struct{})}
		w.recheck = time.AfterFunc(time.Hour, w.overdue)
		w.recheck.Stop()
		lists.open[key] = w
		lists.work.Add(1)
		go lists.run(context.WithoutCancel(ctx), w)
	}
	w.mu.Lock()
	if w.users >= MaxWaiting {
		w.mu.Unlock()
		lists.mu.Unlock()
		return nil, semantics.Errorf(semantics.Throttled,
			"%d receives wait on %s already; use another sidecar or fewer waiting receives", MaxWaiting, source).
			With(semantics.DetailLimit, strconv.Itoa(MaxWaiting))
	}
	w.users++
	if w.linger != nil {
		w.linger.Stop()
	}
	w.mu.Unlock()
	lists.mu.Unlock()

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
			w.mu.Lock()
			w.closeLocked()
			w.mu.Unlock()
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
	w.mu.Lock()
	w.users--
	missed := w.users == 0 && w.pending > 0
	if missed {
		w.pending = 0
	}
	if w.users == 0 && !w.isOver {
		w.linger = time.AfterFunc(linger, func() { lists.closeIfEmpty(w) })
	}
	w.mu.Unlock()
	if missed {
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users > 0 || lists.open[w.source.Fold()] != w {
		return
	}
	delete(lists.open, w.source.Fold())
	w.closeLocked()
}

// close ends all waiting lists and waits for their goroutines. Receives still inside see the Broker's drain.
func (lists *waitingLists) close() {
	lists.mu.Lock()
	lists.closed = true
	for key, w := range lists.open {
		delete(lists.open, key)
		w.mu.Lock()
		w.closeLocked()
		w.mu.Unlock()
	}
	lists.mu.Unlock()
	lists.work.Wait()
}

// closeLocked ends the subscription and the timers. A receive that is still inside starts none.
func (w *waitingList) closeLocked() {
	w.isOver = true
	w.recheck.Stop()
	if w.linger != nil {
		w.linger.Stop()
	}
	close(w.done)
}

// wait tries and waits in turn until there is something, the deadline passes, or the Broker drains. A failure that may
// be waited out is the outcome when nothing better came.
func (w *waitingList) wait(ctx context.Context, draining <-chan struct{}, deadline time.Time, a attempt) error {
	called, arrival := false, w.arrive()
	defer w.wakeNext()
	for {
		register := semantics.RegisterIfEmpty
		if w.waiting() > 0 {
			register = semantics.RegisterAlways
		}
		found, recheck, err := a.try(ctx, register)
		if err != nil && !a.mayWait(err) {
			if called {
				w.wake(1) // the wake-up is used up, but not what it told of
			}
			return err
		}
		if found {
			return nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return err
		}
		if recheck == 0 {
			continue
		}
		over, failed := w.pause(ctx, arrival, draining, a.enough, recheck, left)
		if failed != nil {
			return failed
		}
		if over {
			return err
		}
		called = true
	}
}

// arrive returns the next place in the line.
func (w *waitingList) arrive() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived++
	return w.arrived
}

// insertLocked puts a waiter behind all that arrived before. Most have just arrived and go to the end, or were called
// from the front.
func (w *waitingList) insertLocked(one *waiter) *list.Element {
	isBefore := func(place *list.Element) bool { return place.Value.(*waiter).arrival < one.arrival }
	if front := w.waiters.Front(); front == nil || !isBefore(front) {
		return w.waiters.PushFront(one)
	}
	place := w.waiters.Back()
	for !isBefore(place) {
		place = place.Prev()
	}
	return w.waiters.InsertAfter(one, place)
}

// pause waits to be called. over means that the wait has ended for good.
func (w *waitingList) pause(
	ctx context.Context, arrival uint64, draining, enough <-chan struct{}, recheckAfter, left time.Duration,
) (over bool, err error) {
	w.mu.Lock()
	if !w.isOver {
		w.recheck.Reset(recheckAfter) // the youngest answer knows best when the next lock ends
		w.isArmed = true
	}
	if w.pending > 0 {
		w.pending--
		w.mu.Unlock()
		return false, nil
	}
	one := &waiter{arrival: arrival, called: make(chan struct{})}
	place := w.insertLocked(one)
	w.mu.Unlock()

	timeout := time.NewTimer(left)
	defer timeout.Stop()
	select {
	case <-one.called:
		return false, nil
	case <-timeout.C:
		over = true
	case <-draining:
		over = true
	case <-enough:
		over = true
	case <-ctx.Done():
		over, err = true, semantics.CancelledBy(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.isCalled {
		w.callLocked(1) // it was meant for one that still waits
	} else {
		w.waiters.Remove(place)
	}
	return over, err
}

// overdue calls one waiter although no wake-up came. If it finds nothing it waits and arms the timer again.
func (w *waitingList) overdue() {
	w.mu.Lock()
	w.isArmed = false
	w.mu.Unlock()
	w.wake(1)
}

// wakeNext lets another one look when one leaves that the timer may have called: else the timer would never be armed
// again for those that still wait.
func (w *waitingList) wakeNext() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isArmed && w.waiters.Len() > 0 {
		w.callLocked(1)
	}
}

// wake calls n waiters, or all for n = 0. It reports false when no receive is in the waiting list.
func (w *waitingList) wake(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users == 0 {
		return false
	}
	if n == 0 {
		n = w.users
	}
	w.callLocked(n)
	return true
}

func (w *waitingList) callLocked(n int) {
	for ; n > 0 && w.waiters.Len() > 0; n-- {
		one := w.waiters.Remove(w.waiters.Front()).(*waiter)
		one.isCalled = true
		close(one.called)
	}
	w.pending = min(w.pending+n, w.users+1) // one more than can be used here is passed on when the waiting list empties
}

func (w *waitingList) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters.Len()
}
