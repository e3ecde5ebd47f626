package broker

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// MaxWaiting is the most receives that may wait on one source in one sidecar (QUOTA-4).
const MaxWaiting = 5000

// linger is how long a waiting list keeps its subscription after the last receive left, so that a client that
// polls in a loop does not subscribe again each time.
const linger = 30 * time.Second

// waitingList is the receives that wait on one source, in order of arrival.
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

func newWaitingList(source semantics.Source) *waitingList {
	w := &waitingList{source: source, ready: make(chan struct{}), done: make(chan struct{})}
	w.recheck = time.AfterFunc(time.Hour, w.overdue)
	w.recheck.Stop()
	return w
}

// join adds a receive, and reports false if there are too many.
func (w *waitingList) join() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users >= MaxWaiting {
		return false
	}
	w.users++
	if w.linger != nil {
		w.linger.Stop()
	}
	return true
}

// leave removes a receive. After the last one it starts the timer that calls closeIfEmpty, and reports whether a
// wake-up came that no receive used.
func (w *waitingList) leave(closeIfEmpty func()) (missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users--
	if w.users > 0 {
		return false
	}
	if !w.isOver {
		w.linger = time.AfterFunc(linger, closeIfEmpty)
	}
	missed = w.pending > 0
	w.pending = 0
	return missed
}

// close ends the subscription and the timers. A receive that is still inside starts none.
func (w *waitingList) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLocked()
}

// closeIfEmpty closes the waiting list unless a receive is in it, and reports whether it did.
func (w *waitingList) closeIfEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users > 0 {
		return false
	}
	w.closeLocked()
	return true
}

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
