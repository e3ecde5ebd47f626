package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// held is a joiner whose script calls stop until the test lets them go on.
type held struct {
	joiner[int]
	entered chan []int
	resume  chan struct{}
}

func newHeld(full, most int) *held {
	h := &held{entered: make(chan []int, 100), resume: make(chan struct{})}
	h.joiner = joiner[int]{weigh: func(int) int { return 1 }, full: full, most: most}
	h.run = func(_ context.Context, calls []int) {
		h.entered <- calls
		<-h.resume
	}
	return h
}

func (h *held) waiting(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.queues[key]; l != nil {
		return len(l.waiting)
	}
	return 0
}

func TestJoinerSharesCallsThatGather(t *testing.T) {
	t.Parallel()
	h := newHeld(100, 100)
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.do(t.Context(), "a", 0) })
	if first := <-h.entered; len(first) != 1 {
		t.Fatalf("first call went with %d", len(first))
	}
	for i := 1; i <= 5; i++ {
		wg.Go(func() { _ = h.do(t.Context(), "a", i) })
		for h.waiting("a") < i { // until it has queued, which is a matter of microseconds
			runtime.Gosched()
		}
	}
	wg.Go(func() { _ = h.do(t.Context(), "b", 9) })
	if other := <-h.entered; len(other) != 1 || other[0] != 9 {
		t.Fatalf("another key waited: %v", other)
	}
	close(h.resume)
	together := <-h.entered
	wg.Wait()
	if len(together) != 5 {
		t.Fatalf("%v went together, want five", together)
	}
	for i, call := range together {
		if call != i+1 {
			t.Errorf("order is %v", together)
			break
		}
	}
	if len(h.queues) != 0 {
		t.Errorf("%d queues are left", len(h.queues))
	}
}

// What comes while a batch gathers joins it in order, up to what one script takes. A batch that fills a script leaves.
func TestJoinerGathers(t *testing.T) {
	t.Parallel()
	h := newHeld(4, 5)
	gathered := func(batch, waiting int, shared bool) string {
		q := &batchQueue[int]{weight: waiting, shared: shared}
		var tickets []*ticket[int]
		for i := range batch + waiting {
			tickets = append(tickets, &ticket[int]{call: i})
		}
		q.waiting = slices.Clone(tickets[batch:])
		var calls []int
		for _, each := range h.gather(q, tickets[:batch]) {
			calls = append(calls, each.call)
		}
		if q.weight != len(q.waiting) {
			t.Errorf("%d wait with a weight of %d", len(q.waiting), q.weight)
		}
		return fmt.Sprint(calls)
	}
	for _, c := range []struct {
		batch, waiting int
		shared         bool // the batch before
		want           string
	}{
		{1, 0, true, "[0]"},
		{1, 2, true, "[0 1 2]"},
		{1, 9, true, "[0 1 2 3 4]"},
		{1, 9, false, "[0]"},
		{3, 1, false, "[0 1 2 3]"},
		{4, 1, false, "[0 1 2 3]"},
	} {
		if got := gathered(c.batch, c.waiting, c.shared); got != c.want {
			t.Errorf("%d with %d waiting: %s, want %s", c.batch, c.waiting, got, c.want)
		}
	}
}

func TestJoinerLetsFullOnesGoAtOnce(t *testing.T) {
	t.Parallel()
	h := newHeld(2, 2)
	var wg sync.WaitGroup
	for i := range 2 * width { // the first script may take one call or two
		wg.Go(func() { _ = h.do(t.Context(), "a", i) })
	}
	total := 0
	for range width {
		total += len(<-h.entered) // none of them has returned
	}
	if total < width {
		t.Errorf("%d calls under way in %d scripts", total, width)
	}
	close(h.resume)
	wg.Wait()
}

func TestJoinerTakesBackWhatWasNotSent(t *testing.T) {
	t.Parallel()
	h := newHeld(100, 100)
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.do(t.Context(), "a", 0) })
	<-h.entered
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- h.do(ctx, "a", 1) }()
	for h.waiting("a") < 1 { // until it has queued
		runtime.Gosched()
	}
	cancel()
	if code := semantics.CodeOf(<-result); code != semantics.Cancelled {
		t.Errorf("got %q, want CANCELLED", code)
	}
	close(h.resume)
	wg.Wait()
	if len(h.entered) != 0 {
		t.Errorf("the call was sent: %v", <-h.entered)
	}
	if code := semantics.CodeOf(h.do(ctx, "a", 2)); code != semantics.Cancelled {
		t.Errorf("a call that begins ended: got %q, want CANCELLED", code)
	}
}

// A caller that goes away after its call was sent still learns the outcome, because the change may have happened.
func TestJoinerSeesASentCallThrough(t *testing.T) {
	t.Parallel()
	h := newHeld(100, 100)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- h.do(ctx, "a", 0) }()
	<-h.entered
	cancel()
	select {
	case err := <-result:
		t.Fatalf("returned %v before the script did", err)
	default:
	}
	close(h.resume)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestJoinerSurvivesAPanic(t *testing.T) {
	t.Parallel()
	calls := 0
	j := joiner[int]{weigh: func(int) int { return 1 }, full: 10, most: 10}
	j.run = func(context.Context, []int) {
		calls++
		if calls == 1 {
			panic("first")
		}
	}
	func() {
		defer func() { _ = recover() }()
		_ = j.do(t.Context(), "a", 1)
	}()
	if err := j.do(t.Context(), "a", 2); err != nil || calls != 2 {
		t.Errorf("after a panic: %v, %d calls", err, calls)
	}
}
