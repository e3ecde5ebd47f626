package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// entitiesOf is a store with queues, which counts calls.
type entitiesOf struct {
	mu     sync.Mutex // of what follows: the watch reads while a test changes it
	counts map[string]*semantics.Runtime
	calls  int // entities that were counted
	trips  int // calls that counted some
	fails  bool
}

// set changes the store.
func (s *entitiesOf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *entitiesOf) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *entitiesOf) ListEntities(
	_ context.Context, kind semantics.Kind, _, after string, limit int,
) (page []semantics.Entity, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return nil, false, errors.New("down")
	}
	if kind != semantics.QueueKind {
		return nil, false, nil
	}
	var names []string
	for name := range s.counts {
		if name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), limit)] {
		page = append(page, semantics.Entity{Name: name, Options: semantics.DefaultOptions()})
	}
	return page, len(names) > limit, nil
}

func (s *entitiesOf) Runtime(_ context.Context, _ semantics.Kind, path string) (semantics.Runtime, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	n := s.counts[path]
	switch {
	case s.fails:
		return semantics.Runtime{}, errors.New("down")
	case n == nil:
		return semantics.Runtime{}, semantics.NotFound(path)
	default:
		return *n, nil
	}
}

func (s *entitiesOf) Runtimes(_ context.Context, paths []string) ([]*semantics.Runtime, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls += len(paths)
	s.trips++
	if s.fails {
		return nil, errors.New("down")
	}
	all := make([]*semantics.Runtime, len(paths))
	for i, path := range paths {
		if n := s.counts[path]; n != nil {
			now := *n
			all[i] = &now
		}
	}
	return all, nil
}

// onlyOne is a store that counts one at a time.
type onlyOne struct{ Entities }

func queues(n int) *entitiesOf {
	s := &entitiesOf{counts: map[string]*semantics.Runtime{}}
	for i := range n {
		s.counts[fmt.Sprintf("queue-%04d", i)] = &semantics.Runtime{}
	}
	return s
}

// begin runs a watch over a store in a bubble of synctest.
func begin(t *testing.T, s *entitiesOf) *watch {
	t.Helper()
	w := newWatch(s, nil, func() bool { return true }, false)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return w
}

// opened opens a page of a client.
func opened(t *testing.T, w *watch, shows string) (leave func()) {
	t.Helper()
	leave, err := w.open("someone", shows)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

// pass lets time pass in a bubble of synctest, until everything waits again.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Without a page nothing is read, and an hour after the last one everything is forgotten.
func TestNothingIsReadUnlessSomeoneWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(3)
		w := begin(t, s)
		pass(time.Hour)
		if s.called() > 0 {
			t.Fatalf("%d calls without a page", s.called())
		}
		closePage := opened(t, w, "")
		pass(5*tick + tick/2)
		watched := s.called()
		if watched < 3*4 {
			t.Errorf("%d calls in five seconds with a page", watched)
		}
		closePage()
		pass(keepsFor + time.Minute)
		after := s.called()
		pass(time.Hour)
		if s.called() != after || len(w.entities) > 0 {
			t.Errorf("%d more calls in the second hour without a page, %d entities kept", s.called()-after, len(w.entities))
		}
		if quiet := after - watched; quiet < 3*350 || quiet > 3*380 {
			t.Errorf("%d calls in the first hour without a page, want three in ten seconds", quiet)
		}
	})
}

// A page that opens counts at once. The rates do not follow from the moments since the count before, in which a batch
// may have arrived.
func TestRatesNeedSomeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(1)
		w := begin(t, s)
		defer opened(t, w, "")()
		pass(tick / 2)
		arrive := func(n int64) {
			s.set(func() {
				s.counts["queue-0000"].LastSequence += n
				s.counts["queue-0000"].Active += n
			})
		}
		rate := func() float64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.entities["queue-0000"].In
		}
		pass(2 * tick)
		arrive(10)
		pass(tick)
		if rate() != 10 {
			t.Fatalf("%v a second, want 10", rate())
		}
		arrive(5)
		defer opened(t, w, "")()
		pass(tick / 10)
		if rate() != 10 {
			t.Errorf("%v a second at once, want 10 as before", rate())
		}
		pass(tick)
		if rate() < 3 || rate() > 5 {
			t.Errorf("%v a second after a second, want 3 to 5", rate())
		}
	})
}

// However many entities there are, a tick counts a bounded number; those that change come first.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(2000)
		w := begin(t, s)
		defer opened(t, w, "")()
		pass(tick / 2)
		if s.called() < 2000 || s.called() > 2000+2*readsInTick {
			t.Fatalf("%d calls at first, want each queue once", s.called())
		}
		before := s.called()
		pass(20 * tick)
		if n := s.called() - before; n > 20*readsInTick {
			t.Errorf("%d calls in 20 s", n)
		}
		busy := s.counts["queue-1234"]
		for range 25 { // until it was seen to change, and then each tick
			s.set(func() { busy.LastSequence += 7; busy.Active += 7; busy.Available += 7 })
			pass(tick)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if e := w.entities["queue-1234"]; e.In != 7 || e.Available != busy.Available || len(e.history.samples) < 2 {
			t.Errorf("a busy queue is %+v, want 7 a second", e.row)
		}
	})
}

// A thousand queues under watch cost a round trip a second, however many of them change, and fifty counts.
func TestAWatchedThousandCostsARoundTripASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(1000)
		w := begin(t, s)
		defer opened(t, w, "")()
		pass(2*tick + tick/2)
		s.set(func() { s.trips, s.calls = 0, 0 })
		for range 30 {
			s.set(func() {
				for _, n := range s.counts {
					n.LastSequence, n.Active, n.Available = n.LastSequence+1, n.Active+1, n.Available+1
				}
			})
			pass(tick)
		}
		if s.trips > 30 || s.calls > 30*readsInTick || s.calls < 30*readsInTick*9/10 {
			t.Errorf("%d round trips and %d counts in 30 s", s.trips, s.calls)
		}
	})
}

// A store that counts one at a time, as that in memory, is counted so.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(7)
		s.counts["queue-0003"].Available = 5
		w := newWatch(onlyOne{s}, nil, func() bool { return true }, true)
		w.look(t.Context())
		if e := w.entities["queue-0003"]; s.trips > 0 || s.calls < 7 || e.Available != 5 {
			t.Errorf("%d calls, %d of them for some, %+v", s.calls, s.trips, e.row)
		}
	})
}

// What is deleted is reported, and a store that is down leaves what was there.
func TestRemovals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(3)
		w := begin(t, s)
		defer opened(t, w, "")()
		pass(tick)
		s.set(func() { delete(s.counts, "queue-0001") })
		pass(2 * listInterval)
		s.set(func() { s.fails, s.counts = true, nil })
		pass(2 * listInterval)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.entities) != 2 || len(w.removed) != 1 || w.removed[0].path != "queue-0001" {
			t.Errorf("%d entities, removed %v", len(w.entities), w.removed)
		}
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	at := semantics.Runtime{LastSequence: 100, Active: 10, DeadLetter: 1, Scheduled: 5}
	for name, c := range map[string]struct {
		change func(*semantics.Runtime)
		want   rates
	}{
		"nothing":       {func(*semantics.Runtime) {}, rates{}},
		"arrive":        {func(n *semantics.Runtime) { n.LastSequence += 4; n.Active += 4 }, rates{In: 2}},
		"arrive, leave": {func(n *semantics.Runtime) { n.LastSequence += 4 }, rates{In: 2, Out: 2}},
		"leave":         {func(n *semantics.Runtime) { n.Active -= 3 }, rates{Out: 1.5}},
		"dead":          {func(n *semantics.Runtime) { n.Active--; n.DeadLetter++ }, rates{Rise: 0.5}},
		"resubmit":      {func(n *semantics.Runtime) { n.DeadLetter--; n.LastSequence++; n.Active++ }, rates{In: 0.5, Rise: -0.5}},
		"schedule":      {func(n *semantics.Runtime) { n.LastSequence += 2; n.Scheduled += 2 }, rates{}},
		"activate":      {func(n *semantics.Runtime) { n.LastSequence += 2; n.Scheduled -= 2; n.Active += 2 }, rates{In: 1}},
		"another one":   {func(n *semantics.Runtime) { n.LastSequence, n.Active = 3, 3 }, rates{}},
		"recreated":     {func(n *semantics.Runtime) { n.LastSequence += 4; n.CreatedAt = time.Unix(9, 0) }, rates{}},
	} {
		now := at
		c.change(&now)
		if got := ratesBetween(&at, &now, 2); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
