package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// outcome is what became of an order at last.
type outcome string

const (
	confirmed outcome = "confirmed" // on the page
	mailed    outcome = "by mail"
	human     outcome = "for a human"
)

// phase is a part of the story, with orders of its own.
type phase struct {
	name     string
	ids      []string
	took     []time.Duration // each send
	outcomes map[outcome]int
	left     int // orders without an outcome
	done     chan struct{}
}

// book is what is known of each order. It is how the shop's parts are looked at from outside: they do not need it.
type book struct {
	mu       sync.Mutex
	phases   []*phase
	of       map[string]*phase // by order
	told     map[string]bool   // orders whose users know that it takes longer
	outcomes map[string]outcome
	reasons  map[string]int // dead letters that the watch saw
	failed   chan error     // has the first thing that is wrong
}

func newBook() *book {
	return &book{
		of: map[string]*phase{}, told: map[string]bool{}, outcomes: map[string]outcome{}, reasons: map[string]int{},
		failed: make(chan error, 1),
	}
}

// begin opens a phase of so many orders.
func (b *book) begin(name string, count int) *phase {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &phase{name: name, outcomes: map[outcome]int{}, left: count, done: make(chan struct{})}
	for range count {
		id := fmt.Sprintf("order-%04d", len(b.of)+1)
		p.ids = append(p.ids, id)
		b.of[id] = p
	}
	b.phases = append(b.phases, p)
	return p
}

// placed notes how long the website took to send an order.
func (b *book) placed(p *phase, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.took = append(p.took, took)
}

// tell notes that the user of an order knows that it takes longer.
func (b *book) tell(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told[id] = true
}

// saw notes a dead letter.
func (b *book) saw(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reasons[reason]++
}

// settle notes what became of an order. The same may be said twice, but not something else.
func (b *book) settle(id string, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, before := b.of[id], b.outcomes[id]
	switch {
	case p == nil:
		b.fail(fmt.Errorf("no customer placed %q", id))
	case before != "" && before != o:
		b.fail(fmt.Errorf("%s is %s and %s", id, before, o))
	case o == mailed && !b.told[id]:
		b.fail(fmt.Errorf("%s is by mail and its user does not know", id))
	case before == "":
		b.outcomes[id] = o
		p.outcomes[o]++
		if p.left--; p.left == 0 {
			close(p.done)
		}
	}
}

// fail notes what is wrong. The first error counts.
func (b *book) fail(err error) {
	select {
	case b.failed <- err:
	default:
	}
}

// await waits until every order of a phase has its outcome.
func (b *book) await(ctx context.Context, p *phase) error {
	select {
	case <-p.done:
		return nil
	case err := <-b.failed:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Errorf("%s: %d of %d orders have no outcome: %w", p.name, p.left, len(p.ids), context.Cause(ctx))
}

// times is how often the watch saw a reason.
func (b *book) times(reason string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reasons[reason]
}

// count is how many orders of a phase, of all when p is nil, came to an outcome.
func (b *book) count(p *phase, o outcome) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p != nil {
		return p.outcomes[o]
	}
	n := 0
	for _, p := range b.phases {
		n += p.outcomes[o]
	}
	return n
}

// report prints the book.
func (b *book) report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Println("                  orders  send: median  slowest  confirmed  by mail  for a human")
	for _, p := range b.phases {
		slices.Sort(p.took)
		fmt.Printf(
			"%-17s %6d  %9.1f ms %5.0f ms  %9d  %7d  %11d\n", p.name, len(p.ids), milliseconds(p.took[len(p.took)/2]),
			milliseconds(slices.Max(p.took)), p.outcomes[confirmed], p.outcomes[mailed], p.outcomes[human],
		)
	}
	fmt.Println("\nthe watcher received      dead letters  action")
	for _, reason := range slices.Sorted(maps.Keys(b.reasons)) {
		fmt.Printf("%-25s %12d  %s\n", reason, b.reasons[reason], deed(reason))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
