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
	woken map[int]uint64
	quiet map[int]time.Time // partitions that have nothing, and until when they may be left alone
}

// subscriptions are those to some sources, with a goroutine for each.
type subscriptions struct {
	watches []semantics.Watch
	over    chan struct{}
	work    sync.WaitGroup
}

// Watch implements semantics.Receiver.
func (s *Store) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	w := s.remembered(source.Path)
	if w == nil {
		return s.Store.Watch(ctx, source)
	}
	one := &watch{store: s, source: source.Fold(), c: make(chan int, 1)}
	if err := one.follow(ctx, w); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.watches[one.source] = append(s.watches[one.source], one)
	s.mu.Unlock()
	return one, nil
}

// C implements semantics.Watch.
func (w *watch) C() <-chan int { return w.c }

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

// watchAgain lets the watches of a queue follow what it is now. Where that fails they wait until they look again.
func (s *Store) watchAgain(ctx context.Context, folded string, now *whole) {
	s.mu.Lock()
	var open []*watch
	for source, some := range s.watches {
		if source.Path == folded {
			open = append(open, some...)
		}
	}
	s.mu.Unlock()
	for _, one := range open {
		_ = one.follow(ctx, now)
	}
}

// follow subscribes to the wake-ups of the partitions that the queue has now, and makes all look again who waited on
// others.
func (w *watch) follow(ctx context.Context, now *whole) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	if w.closed || w.below != nil && w.of == now {
		return nil
	}
	sources := []semantics.Source{w.source}
	if now != nil {
		sources = sources[:0]
		for p := range now.paths {
			sources = append(sources, now.in(p, w.source))
		}
	}
	below, err := w.subscribe(ctx, sources)
	if err != nil {
		return err
	}
	before := w.below
	w.mu.Lock()
	w.below, w.of, w.woken, w.quiet = below, now, map[int]uint64{}, map[int]time.Time{}
	w.mu.Unlock()
	if before != nil {
		before.end()
		w.wake(0, 0) // what the others told of may be lost
	}
	return nil
}

func (w *watch) subscribe(ctx context.Context, sources []semantics.Source) (*subscriptions, error) {
	below := &subscriptions{watches: make([]semantics.Watch, len(sources)), over: make(chan struct{})}
	places := make([]int, len(sources))
	failed := atOnce(places, func(place, _ int) (err error) {
		below.watches[place], err = w.store.Store.Watch(ctx, sources[place])
		return err
	})
	if at := slices.IndexFunc(failed, func(err error) bool { return err != nil }); at >= 0 {
		below.end()
		return nil, named(inPartition(failed[at], at))
	}
	for p, one := range below.watches {
		below.work.Go(func() {
			for {
				select {
				case n := <-one.C():
					w.wake(p, n)
				case <-below.over:
					return
				}
			}
		})
	}
	return below, nil
}

func (b *subscriptions) end() {
	close(b.over)
	b.work.Wait()
	for _, one := range b.watches {
		if one != nil {
			one.Close()
		}
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

func (w *watch) wakeUps(p int) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.woken[p]
}

// noteQuiet notes that a partition had nothing and would wake this sidecar, unless it has since then.
func (w *watch) noteQuiet(of *whole, p int, wakeUps uint64, recheck time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == of && w.woken[p] == wakeUps && recheck > 0 {
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
