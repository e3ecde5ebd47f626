package broker_test

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

func TestQUOTA_10_EveryVerbHasItsCost(t *testing.T) {
	t.Parallel()
	forEachCall(t, func(t *testing.T, l *limited, c pricedCall) {
		l.ok(c.call(t.Context(), l))
		if got, want := l.spent(), time.Duration(c.before+c.after)*credit; got != want {
			t.Errorf("spent %s of credits, want %s", got, want)
		}
	})

	// No client asks for the first five. Commit is a Transact, which pays for what Add added.
	priced := map[string]bool{
		"AwaitSettled": true, "ReleaseHeld": true, "ActivateDue": true, "Forward": true, "Level": true, "RemoveUnused": true,
		"Commit": true, "Add": true, "Rollback": true,
	}
	for _, c := range pricedCalls() {
		priced[c.verb] = true
	}
	for method := range reflect.TypeFor[*broker.Broker]().Methods() {
		if method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() && !priced[method.Name] {
			t.Errorf("no test of what %s costs", method.Name)
		}
	}
}

func TestTHR_1_ExactRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate       float64
		spent, ask int
		want       time.Duration
	}{
		"one credit":               {100, 100, 1, 10 * time.Millisecond},
		"some are there":           {100, 70, 50, 200 * time.Millisecond},
		"all of them":              {100, 1, 100, 10 * time.Millisecond},
		"more than there ever are": {100, 1, 900, 10 * time.Millisecond},
		"in debt":                  {100, 1000, 10, 9100 * time.Millisecond},
		"no round duration":        {3, 3, 2, 666_666_667},
		"less than one a second":   {0.5, 1, 1, 2 * time.Second},
		"slow and in debt":         {0.5, 10, 10, 20 * time.Second},
		"fast":                     {1e6, 1000, 1000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLimited(t, c.rate)
				defer l.close()
				l.ok(l.pay(c.spent))
				wait := retryAfter(l.pay(c.ask))
				if off := wait - c.want; off < -2 || off > 2 { // nanoseconds
					t.Fatalf("RetryAfter is %s, want %s", wait, c.want)
				}
				if wait == 0 {
					return
				}
				<-time.After(wait - 1)
				err := l.pay(c.ask)
				wantCode(t, "a nanosecond too early", err, semantics.Throttled)
				<-time.After(retryAfter(err))
				l.ok(l.pay(c.ask))
			})
		})
	}
}

func TestTHR_2_RefusedCallDidNothing(t *testing.T) {
	t.Parallel()
	forEachCall(t, func(t *testing.T, l *limited, c pricedCall) {
		l.ok(l.pay(10 * testRate))
		held, store := l.free.Held(), l.door.Store
		l.door.Store = nil
		err := c.call(t.Context(), l)
		wantCode(t, "a call in debt", err, semantics.Throttled)
		if want := 9*time.Second + time.Duration(c.before)*credit; retryAfter(err) != want {
			t.Errorf("RetryAfter is %s, want %s", retryAfter(err), want)
		}
		if l.Held() != 0 || l.free.Held() != held || l.spent() != 10*time.Second {
			t.Errorf("holds %d messages and waits for %s of credits", l.Held(), l.spent())
		}
		l.door.Store = store
		<-time.After(retryAfter(err))
		l.ok(c.call(t.Context(), l))
	})
}

// What is wrong with a call is said first and costs nothing (ERR-5).
func TestERR_5_SyntaxBeforeRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, testRate)
		defer l.close()
		l.ok(l.pay(10 * testRate))
		_, err := l.Send(t.Context(), semantics.ToQueue("orders"), nil)
		wantCode(t, "send of nothing", err, semantics.InvalidArgument)
		_, err = l.GetEntity(t.Context(), semantics.QueueKind, ".")
		wantCode(t, "bad name", err, semantics.InvalidArgument)
		l.BeginDrain()
		_, err = l.Receive(t.Context(), rateOrders, broker.ReceiveOptions{MaxMessages: 1})
		wantCode(t, "receive while draining", err, semantics.StoreUnavailable)
	})
}

func TestQUOTA_10_BurstIsOneSecond(t *testing.T) {
	t.Parallel()
	for rate, burst := range map[float64]int64{100: 100, 2.5: 2, 0.5: 1, 99.9: 99} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimited(t, rate)
			defer l.close()
			for range 2 {
				<-time.After(time.Hour) // what is not used does not pile up
				var admitted atomic.Int64
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						for range 50 {
							if l.pay(1) == nil {
								admitted.Add(1)
							}
						}
					})
				}
				all.Wait()
				if admitted.Load() != burst {
					t.Errorf("rate %g: %d calls at once, want %d", rate, admitted.Load(), burst)
				}
			}
		})
	}
}

func TestQUOTA_10_DebtEndsWithinAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, 0.1)
		defer l.close()
		l.ok(l.pay(1000))
		if got, want := retryAfter(l.pay(1)), time.Hour+10*time.Second; got != want {
			t.Errorf("RetryAfter is %s, want %s", got, want)
		}
	})
}

func TestQUOTA_10_OffByDefault(t *testing.T) {
	t.Parallel()
	for _, options := range [][]broker.Option{nil, {broker.WithRateLimit(0)}, {broker.WithRateLimit(1), broker.WithRateLimit(0)}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimited(t, testRate)
			defer l.close()
			l.Broker = broker.New(l.door, options...)
			for range 20 {
				l.ok(l.pay(semantics.MaxSettleTokens))
				_, err := l.GetEntity(t.Context(), semantics.QueueKind, "orders")
				l.ok(err)
			}
		})
	}
}

// The Broker's own work is free even in debt: answers are finished and a drain gives back what is held.
func TestQUOTA_10_OwnWorkIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, testRate)
		defer l.close()
		receive := func(mode semantics.Mode) *delivery.Delivery {
			d, err := l.Receive(t.Context(), rateOrders, broker.ReceiveOptions{MaxMessages: 1, Mode: mode})
			l.ok(err)
			return d
		}
		removed, lost := receive(semantics.ReceiveAndDelete), receive(semantics.PeekLock)
		receive(semantics.PeekLock)
		<-time.After(time.Second)
		l.ok(l.pay(10 * testRate))

		l.ok(removed.Delivered(t.Context()))
		l.ok(lost.Undelivered(t.Context()))
		l.ok(l.ReleaseHeld(t.Context()))
		counts, err := l.free.Runtime(t.Context(), semantics.QueueKind, "orders")
		l.ok(err)
		if l.Held() != 0 || counts.Available != 2 || counts.Locked != 2 || l.spent() != 10*time.Second {
			t.Errorf("holds %d, the queue has %+v, spent %s; want 0, 2 available and 2 locked, 10s", l.Held(), counts, l.spent())
		}
	})
}

// A receive pays when it comes, not each time it looks, and gets its message however deep the debt has become
// meanwhile.
func TestQUOTA_10_WaitingReceivePaysOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, testRate)
		defer l.close()
		l.take(3)
		received := make(chan *delivery.Delivery)
		go func() {
			d, err := l.Receive(t.Context(), rateOrders, broker.ReceiveOptions{MaxMessages: 10, MaxWait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			received <- d
		}()
		<-time.After(30 * time.Second)
		l.ok(l.pay(10 * testRate))
		l.send(3, time.Time{})
		if d := <-received; d != nil && len(d.Messages) != 3 {
			t.Errorf("received %d messages, want 3", len(d.Messages))
		}
		if got, want := l.spent(), 10*time.Second+2*credit; got != want {
			t.Errorf("spent %s of credits, want %s", got, want)
		}
	})
}
