package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// record watches what the workers do: it knows the log and so what has to come next of each thing.
type record struct {
	mu       sync.Mutex
	expected map[string][]string // what has to come of each thing
	next     map[string]int      // which of it comes next
	switches int                 // neighbours in the log that are of different things
	left     int
	done     chan struct{} // closed when nothing is left
	failed   chan error    // has the first thing that is wrong

	holder  map[string]int // who handles a thing now
	last    map[string]int // who handled it last
	moves   int            // of things from one worker to another
	workers [workers]struct {
		events, most int             // handled; handled at a time
		now          int             // handled now
		things       map[string]bool // of which it handled events
	}
}

func newRecord(events []event) *record {
	r := &record{
		expected: map[string][]string{}, next: map[string]int{}, left: len(events), done: make(chan struct{}),
		failed: make(chan error, 1), holder: map[string]int{}, last: map[string]int{},
	}
	for i, e := range events {
		if i > 0 && e.thing != events[i-1].thing {
			r.switches++
		}
		r.expected[e.thing] = append(r.expected[e.thing], e.what)
	}
	for i := range r.workers {
		r.workers[i].things = map[string]bool{}
	}
	return r
}

// fail notes what is wrong. The first error counts.
func (r *record) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// begin notes that a worker begins with an event of a thing, and returns what to call when it ends.
func (r *record) begin(worker int, thing string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, isHeld := r.holder[thing]; isHeld {
		r.fail(fmt.Errorf("workers %d and %d handle %q at the same time", other+1, worker+1, thing))
	}
	if before, isKnown := r.last[thing]; isKnown && before != worker {
		r.moves++
	}
	r.holder[thing], r.last[thing] = worker, worker
	w := &r.workers[worker]
	w.now++
	w.most = max(w.most, w.now)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.holder, thing)
		w.now--
	}
}

// handled compares an event with the log.
func (r *record) handled(worker int, e event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.next[e.thing]
	if i == len(r.expected[e.thing]) || r.expected[e.thing][i] != e.what {
		err := fmt.Errorf("event %d of %q is %q", i+1, e.thing, e.what)
		r.fail(err)
		return err
	}
	r.next[e.thing]++
	r.workers[worker].events++
	r.workers[worker].things[e.thing] = true
	if r.left--; r.left == 0 {
		close(r.done)
	}
	return nil
}

func (r *record) awaitAll(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case err := <-r.failed:
		return err
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		return fmt.Errorf("%d events are left: %w", r.left, context.Cause(ctx))
	}
}

// report prints what was done, unless something is wrong.
func (r *record) report(took time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case err := <-r.failed:
		return err
	default:
	}
	longest, events := 0, 0
	for _, all := range r.expected {
		events += len(all)
		longest = max(longest, len(all))
	}
	fmt.Printf(
		"%d events of %d sessions, up to %d of one; %d follow an event of another session\n", events, len(r.expected),
		longest, r.switches,
	)
	fmt.Printf("handled in %.1f s (%.0f/s)\n\n", took.Seconds(), float64(events)/took.Seconds())
	fmt.Println("worker  events  sessions  most at a time")
	for i, w := range r.workers {
		fmt.Printf("%6d  %6d  %8d  %14d\n", i+1, w.events, len(w.things), w.most)
	}
	fmt.Printf("\nsessions that continued with another worker: %d\n", r.moves)
	fmt.Println("every event was handled once, in the order of its session, and by one worker at a time")
	return nil
}
