package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// openStill creates a queue by a clock that stands still, so that no sidecar waits for longer than the test says.
func openStill(t *testing.T) (*swept, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	s := openSwept(t, redisstore.Options{Now: clock.Now})
	s.create(t, func(*semantics.Options) {})
	return s, clock
}

// waiter is a sidecar with one watch.
type waiter struct {
	semantics.Watch
	store *redisstore.Store
}

// wait opens a sidecar that waits on a source of the namespace of s.
func (s *swept) wait(t *testing.T, source semantics.Source) waiter {
	t.Helper()
	w := waiter{store: redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: s.now})}
	var err error
	if w.Watch, err = w.store.Watch(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	w.look(t, source)
	return w
}

// look finds nothing and goes on waiting.
func (w waiter) look(t *testing.T, source semantics.Source) {
	t.Helper()
	batch, err := w.store.Receive(t.Context(), source, 1, semantics.RegisterIfEmpty)
	if err != nil || len(batch.Messages) != 0 {
		t.Fatal(batch, err)
	}
}

// wantWoken waits for a wake-up.
func (w waiter) wantWoken(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	select {
	case <-w.C():
	case <-ctx.Done():
		t.Fatal("never woken")
	}
}

func (s *swept) waiting(t *testing.T, list string) int64 {
	t.Helper()
	n, err := s.raw.ZCard(t.Context(), s.key(list)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// One message wakes a sidecar that lives, however many names of dead ones stand before it (finding 13).
func TestRECV_10_DeadSidecarsSwallowNoWakeUp(t *testing.T) {
	t.Parallel()
	for what, source := range map[string]semantics.Source{"waiting": orders, "dead_waiting": deadOrders} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, clock := openStill(t)
			since := float64(clock.Now().UnixMilli() - 10_000)
			for i := range 150 {
				s.raw.ZAdd(t.Context(), s.key(what), redis.Z{Score: since, Member: "dead" + strconv.Itoa(i)})
			}
			live := s.wait(t, source)
			defer live.Close()
			if n := s.waiting(t, what); n != 151 {
				t.Fatalf("%d sidecars wait, want the dead ones and the one that lives", n)
			}
			s.send(t, &semantics.Message{MessageID: "1"})
			if what == "dead_waiting" {
				m := receiveOne(t, s)
				if _, err := s.DeadLetter(t.Context(), orders, []semantics.LockToken{m.LockToken}, semantics.DeadLetterTexts{}, nil); err != nil {
					t.Fatal(err)
				}
			}
			live.wantWoken(t)
			if n := s.waiting(t, what); n != 0 {
				t.Errorf("%d names are left", n)
			}
		})
	}
}

// A sidecar that stops waiting in good order leaves the list at once.
func TestRECV_10_WhoStopsWaitingLeavesTheList(t *testing.T) {
	t.Parallel()
	s, _ := openStill(t)
	for range 5 {
		gone := s.wait(t, orders)
		gone.Close()
	}
	if n := s.waiting(t, "waiting"); n != 0 {
		t.Errorf("%d sidecars are left on the list", n)
	}
}

// A wake-up that comes to a sidecar just when it stops waiting is handed to the next one.
func TestRECV_10_WakeUpOfOneThatLeavesGoesOn(t *testing.T) {
	t.Parallel()
	s, clock := openStill(t)
	first := s.wait(t, orders)
	clock.Advance(time.Millisecond)
	second := s.wait(t, orders)
	defer second.Close()
	s.send(t, &semantics.Message{MessageID: "1"})
	first.wantWoken(t) // but it has no receive left
	first.Close()
	second.wantWoken(t)
}

// The list has no names but of sidecars that looked lately, and none of them loses its place by looking.
func TestRECV_10_ListOfWaitingSidecarsIsBounded(t *testing.T) {
	t.Parallel()
	s, clock := openStill(t)
	now := float64(clock.Now().UnixMilli())
	for i := range 1000 {
		s.raw.ZAdd(t.Context(), s.key("waiting"), redis.Z{Score: now - 3_600_000, Member: fmt.Sprint("dead", i)})
	}
	live := s.wait(t, orders)
	defer live.Close()
	left := s.raw.ZRangeWithScores(t.Context(), s.key("waiting"), 0, -1).Val()
	if len(left) != 1 {
		t.Fatalf("%d names stand on the list", len(left))
	}
	live.look(t, orders)
	if again := s.raw.ZScore(t.Context(), s.key("waiting"), left[0].Member.(string)).Val(); again != left[0].Score {
		t.Errorf("its place is %f, was %f", again, left[0].Score)
	}
	s.raw.ZAdd(t.Context(), s.key("waiting"), redis.Z{Score: now - 14_000, Member: left[0].Member})
	live.look(t, orders)
	if again := s.raw.ZScore(t.Context(), s.key("waiting"), left[0].Member.(string)).Val(); again < now {
		t.Errorf("a sidecar that looks has a place that is %f ms old", now-again)
	}
}

// A sidecar that hangs hears what it is told and does nothing. When it has not looked for longer than it may, the next
// one is told too.
func TestRECV_10_HangingSidecarSwallowsNoWakeUp(t *testing.T) {
	t.Parallel()
	s, clock := openStill(t)
	hanging := s.wait(t, orders)
	defer hanging.Close()
	name := s.raw.ZRange(t.Context(), s.key("waiting"), 0, 0).Val()[0]
	live := s.wait(t, orders)
	defer live.Close()
	s.raw.ZAdd(t.Context(), s.key("waiting"), redis.Z{Score: float64(clock.Now().UnixMilli() - 21_000), Member: name})
	s.send(t, &semantics.Message{MessageID: "1"})
	live.wantWoken(t)
}

// A receive that begins to wait just when the last one before it stops is told to look once more, because the sidecar
// left the list.
func TestRECV_10_WhoComesWhileTheLastOneLeavesLooksAgain(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	var between func() // runs before the next script
	s := openSwept(t, redisstore.Options{Now: func() time.Time {
		if f := between; f != nil {
			between = nil
			f()
		}
		return clock.Now()
	}})
	s.create(t, func(*semantics.Options) {})
	watch := func() waiter {
		w := waiter{store: s.Store}
		var err error
		if w.Watch, err = s.Store.Watch(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		w.look(t, orders)
		return w
	}
	first := watch()
	var second waiter
	between = func() { second = watch() }
	first.Close()
	defer second.Close()
	if n := s.waiting(t, "waiting"); n != 0 {
		t.Fatal("the sidecar is still on the list: this proves nothing")
	}
	second.wantWoken(t)
}
