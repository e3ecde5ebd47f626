package partitioned

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// watch is a subscription to the wake-ups of all partitions of a queue. It also knows which of them have nothing.
type watch struct {
	store  *Store
	source semantics.Source
	c      chan int

	turn   sync.Mutex // held while the partitions that it watches change
	below  *subscriptions
	closed bool

	mu    sync.Mutex // guards what follows, and sending to c
	of    *whole     // nil: the queue has one partition now
	isNew bool       // no receive relies on it yet
	heard map[int]bool
	woken map[int]uint64
	quiet map[int]time.Time // partitions that have nothing, and until when they may be left alone

	sessions []semantics.LockToken // that were woken; only of HeldSessions
}

// Watch implements semantics.Receiver. It hears of the partitions that can be reached, and of the others later.
func (s *Store) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	w := s.remembered(source.Path)
	if w == nil {
		return s.Store.Watch(ctx, source)
	}
	if p, ok := w.sessionOf(source); ok { // which ends with its queue, so the watch need not follow
		one, err := s.Store.Watch(ctx, w.in(p, source))
		return one, named(inPartition(err, p))
	}
	one := &watch{store: s, source: source.Fold(), c: make(chan int, 1), isNew: true}
	one.follow(ctx, w)
	if err := one.below.await(ctx); err != nil {
		one.below.end()
		return nil, named(err)
	}
	one.mu.Lock()
	one.isNew = false
	one.mu.Unlock()
	s.mu.Lock()
	s.watches[one.source] = append(s.watches[one.source], one)
	s.mu.Unlock()
	return one, nil
}

// C implements semantics.Watch.
func (w *watch) C() <-chan int { return w.c }

// Sessions implements semantics.Watch.
func (w *watch) Sessions() []semantics.LockToken {
	w.mu.Lock()
	defer w.mu.Unlock()
	woken := w.sessions
	w.sessions = nil
	return woken
}

// noteSessions notes sessions that a partition told of.
func (w *watch) noteSessions(p int, sessions []semantics.LockToken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, lock := range sessions {
		w.sessions = append(w.sessions, lock.InPartition(p))
	}
}

// Close implements semantics.Watch.
func (w *watch) Close() {
	s := w.store
	s.mu.Lock()
	s.watches[w.source] = slices.DeleteFunc(s.watches[w.source], func(one *watch) bool { return one == w })
	if len(s.watches[w.source]) == 0 {
		delete(s.watches, w.source)
	}
	s.mu.Unlock()
	w.turn.Lock()
	defer w.turn.Unlock()
	w.closed = true
	w.below.end()
}

// watchOf returns an open watch of a source, nil if there is none.
func (s *Store) watchOf(source semantics.Source) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.watches[source.Fold()]; len(open) > 0 {
		return open[0]
	}
	return nil
}

// watchAgain lets the watches of a queue follow what it is now.
func (s *Store) watchAgain(ctx context.Context, folded string, now *whole) {
	for _, one := range s.openWatches(folded) {
		one.follow(ctx, now)
	}
}

// openWatches returns the open watches of a queue and its sub-queues.
func (s *Store) openWatches(folded string) (open []*watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for source, some := range s.watches {
		if source.Path == folded {
			open = append(open, some...)
		}
	}
	return open
}

// follow subscribes to the wake-ups of the partitions that the queue has now, and makes all look again who waited on
// others.
func (w *watch) follow(ctx context.Context, now *whole) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.closed || w.below != nil && w.of == now {
		return
	}
	sources := []semantics.Source{w.source}
	if now != nil {
		sources = sources[:0]
		for p := range now.paths {
			sources = append(sources, now.in(p, w.source))
		}
	}
	before := w.below
	w.mu.Lock()
	w.of, w.heard, w.woken, w.quiet = now, map[int]bool{}, map[int]uint64{}, map[int]time.Time{}
	w.mu.Unlock()
	w.below = w.subscribe(ctx, now, sources)
	if before != nil {
		before.end()
		w.wake(0, 0) // what the others told of may be lost
	}
}

// wake passes a wake-up of a partition on. Those that are not taken yet are added up; 0 stands for all who wait.
func (w *watch) wake(p, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken[p]++
	delete(w.quiet, p)
	select {
	case old := <-w.c:
		if old == 0 || n == 0 {
			n = 0
		} else {
			n += old
		}
	default:
	}
	w.c <- n
}

// hear notes that wake-ups of a partition come from now on. What it had before it may not have told of.
func (w *watch) hear(of *whole, p int) {
	w.mu.Lock()
	isPresent := w.of == of
	if isPresent {
		w.heard[p] = true
	}
	isAwaited := isPresent && !w.isNew
	w.mu.Unlock()
	if isAwaited {
		w.wake(p, 0)
	}
}

// wakeUps returns how often a partition has woken this sidecar.
func (w *watch) wakeUps(p int) uint64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.woken[p]
}

// noteQuiet notes that a partition had nothing and would wake this sidecar, unless it has since then.
func (w *watch) noteQuiet(of *whole, p int, wakeUps uint64, recheck time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == of && w.heard[p] && w.woken[p] == wakeUps && recheck > 0 {
		w.quiet[p] = time.Now().Add(recheck)
	}
}

// divide divides partitions into those that may have something and those that have nothing, and returns after what time
// the first of the latter must be asked again.
func (w *watch) divide(of *whole, partitions []int) (active, quiet []int, until time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	until = time.Hour
	for _, p := range partitions {
		rest := w.quiet[p].Sub(now)
		if w.of != of || rest <= 0 {
			active = append(active, p)
			continue
		}
		quiet, until = append(quiet, p), min(until, rest)
	}
	return active, quiet, until
}
