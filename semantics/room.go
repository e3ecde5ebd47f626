package semantics

import (
	"container/list"
	"context"
	"strconv"
	"sync"
	"time"
)

// MaxWaiting is the most receives that may wait on one source in one sidecar (QUOTA-4).
const MaxWaiting = 5000

// roomLinger is how long a room keeps its subscription after the last receive left, so that a client that
// polls in a loop does not subscribe anew each time.
const roomLinger = 30 * time.Second

// rooms are the waiting rooms of a Broker, one for each source somebody waits on.
//
// A receive that finds nothing sits down in the room of its source, in order of arrival. A wake-up from the store
// calls as many waiters as messages arrived; they look again through the store, which joins their calls into one.
// Who finds nothing sits down again. A lost wake-up is made up for by the room's recheck timer.
type rooms struct {
	store  Store
	mu     sync.Mutex
	open   map[Source]*room
	closed bool
	work   sync.WaitGroup
}

type room struct {
	source Source
	ready  chan struct{} // closed when the subscription stands or failed
	failed error
	watch  Watch

	mu      sync.Mutex
	users   int       // receives inside, seated or on their way to the store
	seats   list.List // of *seat, oldest first
	pending int       // wake-ups that found nobody seated while receives were on their way
	recheck *time.Timer
	isArmed bool // recheck runs
	linger  *time.Timer
	done    chan struct{} // closed when the room closes
}

type seat struct {
	called chan struct{}
	isUp   bool
}

func (r *rooms) init(store Store) {
	r.store = store
	r.open = map[Source]*room{}
}

// registerFor tells how a first look must register: others may be waiting on the source already.
func (r *rooms) registerFor(source Source) Register {
	r.mu.Lock()
	room := r.open[source.Fold()]
	r.mu.Unlock()
	if room != nil && room.seated() > 0 {
		return RegisterAlways
	}
	return RegisterNever
}

// isOpen reports whether the room of source is open, so that its subscription stands or is on its way.
func (r *rooms) isOpen(source Source) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[source.Fold()] != nil
}

// enter joins or opens the room of source and blocks until its subscription stands.
func (r *rooms) enter(ctx context.Context, source Source) (*room, error) {
	key := source.Fold()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, Errorf(StoreUnavailable, "this sidecar has stopped").With(DetailCause, "draining")
	}
	rm := r.open[key]
	if rm == nil {
		rm = &room{source: source, ready: make(chan struct{}), done: make(chan struct{})}
		rm.recheck = time.AfterFunc(time.Hour, rm.overdue)
		rm.recheck.Stop()
		r.open[key] = rm
		r.work.Add(1)
		go r.run(context.WithoutCancel(ctx), rm)
	}
	rm.mu.Lock()
	if rm.users >= MaxWaiting {
		rm.mu.Unlock()
		r.mu.Unlock()
		return nil, Errorf(Throttled, "%d receives wait on %s already", MaxWaiting, source).
			With(DetailLimit, strconv.Itoa(MaxWaiting))
	}
	rm.users++
	if rm.linger != nil {
		rm.linger.Stop()
	}
	rm.mu.Unlock()
	r.mu.Unlock()

	select {
	case <-rm.ready:
	case <-ctx.Done():
		r.leave(ctx, rm)
		return nil, cancelled(ctx)
	}
	if rm.failed != nil {
		r.leave(ctx, rm)
		return nil, rm.failed
	}
	return rm, nil
}

// run owns the room's subscription from the first receive to the last.
func (r *rooms) run(ctx context.Context, rm *room) {
	defer r.work.Done()
	subscribe, cancel := context.WithTimeout(ctx, settleTimeout)
	rm.watch, rm.failed = r.store.Watch(subscribe, rm.source)
	cancel()
	if rm.failed != nil {
		r.mu.Lock() // first out of the way, so that who comes after the failure tries anew
		if r.open[rm.source.Fold()] == rm {
			delete(r.open, rm.source.Fold())
		}
		r.mu.Unlock()
		close(rm.ready)
		return
	}
	close(rm.ready)
	defer rm.watch.Close()
	for {
		select {
		case n := <-rm.watch.C():
			if !rm.wake(n) {
				r.passOn(ctx, rm)
			}
		case <-rm.done:
			return
		}
	}
}

// leave takes one receive out of the room and closes the room when it stays empty.
func (r *rooms) leave(ctx context.Context, rm *room) {
	rm.mu.Lock()
	rm.users--
	missed := rm.users == 0 && rm.pending > 0
	if missed {
		rm.pending = 0
	}
	if rm.users == 0 {
		rm.linger = time.AfterFunc(roomLinger, func() { r.closeIfEmpty(rm) })
	}
	rm.mu.Unlock()
	if missed {
		r.passOn(context.WithoutCancel(ctx), rm)
	}
}

// passOn hands a wake-up that nobody here can use to the next sidecar. A failure is made up for by the other
// sidecars' recheck timers.
func (r *rooms) passOn(ctx context.Context, rm *room) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_ = r.store.PassOn(ctx, rm.source)
}

// forget closes the room of a source that will never have anything again, unless somebody is in it.
func (r *rooms) forget(source Source) {
	r.mu.Lock()
	rm := r.open[source.Fold()]
	r.mu.Unlock()
	if rm != nil {
		r.closeIfEmpty(rm)
	}
}

func (r *rooms) closeIfEmpty(rm *room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if rm.users > 0 || r.open[rm.source.Fold()] != rm {
		return
	}
	delete(r.open, rm.source.Fold())
	rm.recheck.Stop()
	if rm.linger != nil {
		rm.linger.Stop()
	}
	close(rm.done)
}

// close ends all rooms and waits for their goroutines. Receives still inside see the Broker's drain.
func (r *rooms) close() {
	r.mu.Lock()
	r.closed = true
	for key, rm := range r.open {
		delete(r.open, key)
		rm.mu.Lock()
		rm.recheck.Stop()
		if rm.linger != nil {
			rm.linger.Stop()
		}
		close(rm.done)
		rm.mu.Unlock()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// attempt is what a call in a room does again and again until it has what it waits for.
type attempt struct {
	// try looks once. recheck is as Batch.RecheckAfter.
	try func(ctx context.Context, register Register) (found bool, recheck time.Duration, err error)
	// waits tells which failures are only to be waited out. Nil: none.
	waits func(err error) bool
}

func (a attempt) mayWait(err error) bool { return a.waits != nil && a.waits(err) }

// wait tries and waits in turn until there is something, the deadline passes, or the Broker drains. A failure that may be
// waited out is the outcome when nothing better came.
func (rm *room) wait(ctx context.Context, draining <-chan struct{}, deadline time.Time, a attempt) error {
	called := false
	defer rm.relieve()
	for {
		register := RegisterIfEmpty
		if rm.seated() > 0 {
			register = RegisterAlways
		}
		found, recheck, err := a.try(ctx, register)
		if err != nil && !a.mayWait(err) {
			if called {
				rm.wake(1) // the wake-up is used up, but not what it told of
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
		over, failed := rm.sit(ctx, draining, recheck, left)
		if failed != nil {
			return failed
		}
		if over {
			return err
		}
		called = true
	}
}

// sit waits to be called. over means that the wait has ended for good.
func (rm *room) sit(ctx context.Context, draining <-chan struct{}, recheckAfter, left time.Duration) (over bool, err error) {
	rm.mu.Lock()
	rm.recheck.Reset(recheckAfter) // the youngest answer knows best when the next lock ends
	rm.isArmed = true
	if rm.pending > 0 {
		rm.pending--
		rm.mu.Unlock()
		return false, nil
	}
	s := &seat{called: make(chan struct{})}
	place := rm.seats.PushBack(s)
	rm.mu.Unlock()

	timeout := time.NewTimer(left)
	defer timeout.Stop()
	select {
	case <-s.called:
		return false, nil
	case <-timeout.C:
		over = true
	case <-draining:
		over = true
	case <-ctx.Done():
		over, err = true, cancelled(ctx)
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if s.isUp {
		rm.callLocked(1) // it was meant for somebody who still waits
	} else {
		rm.seats.Remove(place)
	}
	return over, err
}

// overdue calls one waiter although nobody told that there is something. If it finds nothing it sits down and arms the timer again.
func (rm *room) overdue() {
	rm.mu.Lock()
	rm.isArmed = false
	rm.mu.Unlock()
	rm.wake(1)
}

// relieve lets another one look when somebody leaves whom the timer may have called: else the timer would never be armed again for
// those who still sit.
func (rm *room) relieve() {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if !rm.isArmed && rm.seats.Len() > 0 {
		rm.callLocked(1)
	}
}

// wake calls n waiters, or all for n = 0. It reports false when nobody is in the room at all.
func (rm *room) wake(n int) bool {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if rm.users == 0 {
		return false
	}
	if n == 0 {
		n = rm.users
	}
	rm.callLocked(n)
	return true
}

func (rm *room) callLocked(n int) {
	for ; n > 0 && rm.seats.Len() > 0; n-- {
		s := rm.seats.Remove(rm.seats.Front()).(*seat)
		s.isUp = true
		close(s.called)
	}
	rm.pending = min(rm.pending+n, rm.users+1) // one more than can be used here is passed on when the room empties
}

func (rm *room) seated() int {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return rm.seats.Len()
}
