package broker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// quietStore has nothing and wakes no receive.
type quietStore struct{ fails error }

func (s quietStore) Watch(context.Context, semantics.Source) (semantics.Watch, error) {
	return s, s.fails
}
func (quietStore) PassOn(context.Context, semantics.Source) error { return nil }
func (quietStore) C() <-chan int                                  { return nil }
func (quietStore) Sessions() []semantics.LockToken                { return nil }
func (quietStore) Close()                                         {}

func (w *waitingList) wantNoTimer(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recheck.Stop() {
		t.Error("the timer for lost wake-ups runs")
	}
	if w.linger != nil && w.linger.Stop() {
		t.Error("the timer that closes the waiting list runs")
	}
}

// A receive that is in a waiting list when the Broker closes leaves no timer behind.
func TestCloseLeavesNoTimer(t *testing.T) {
	t.Parallel()
	var lists waitingLists
	lists.init(quietStore{})
	w, err := lists.enter(t.Context(), semantics.Source{Path: "q"})
	if err != nil {
		t.Fatal(err)
	}
	lists.close()
	draining := make(chan struct{})
	close(draining)
	if over, err := w.pause(t.Context(), w.arrive(), draining, nil, time.Hour, time.Hour); !over || err != nil {
		t.Errorf("got %t, %v", over, err)
	}
	lists.leave(t.Context(), w)
	w.wantNoTimer(t)
}

// A waiting list without a subscription is gone, and so are its timers.
func TestFailedWatchLeavesNoTimer(t *testing.T) {
	t.Parallel()
	var lists waitingLists
	lists.init(quietStore{fails: errors.New("down")})
	w := newWaitingList(semantics.Source{Path: "q"})
	w.join()
	w.recheck.Reset(time.Hour)
	lists.open[w.source] = w
	lists.work.Add(1)
	lists.run(t.Context(), w)
	lists.leave(t.Context(), w)
	w.wantNoTimer(t)
	lists.close()
}
