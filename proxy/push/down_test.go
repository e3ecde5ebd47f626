package push

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

// While the app does not accept connections, messages are locked only during tries, and no delivery is counted.
func TestRECV_7_TheAppIsDown(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				var mu sync.Mutex
				var bodies []string
				b.app.isDown.Store(true)
				b.begin(Handler{Source: "queues/" + queue}, func(_ http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					mu.Lock()
					defer mu.Unlock()
					bodies = append(bodies, string(body))
				})
				b.send(queue, "a/1", "a/2", "a/3")
				const outage = 10 * time.Minute
				for range outage / (time.Second * 5) {
					pass(5 * time.Second)
					b.wantCounts(queue, "available 3 delayed 0 locked 0 deferred 0 dead 0")
				}
				for _, m := range b.peek(semantics.Source{Path: queue}) {
					if m.DeliveryCount != 0 {
						t.Errorf("delivery count %d of %s", m.DeliveryCount, m.Body)
					}
				}
				tries := b.app.tries()
				if n := len(tries); n < int(outage/settling.MaxBackoff) || n > 2*int(outage/settling.MaxBackoff)+20 {
					t.Errorf("%d tries to connect in %s", n, outage)
				}
				var least, most time.Duration = outage, 0
				for i := 20; i < len(tries); i++ {
					least, most = min(least, tries[i].Sub(tries[i-1])), max(most, tries[i].Sub(tries[i-1]))
				}
				if least < settling.MaxBackoff/2 || most > settling.MaxBackoff || most-least < time.Second { // not all alike
					t.Errorf("pauses of %s to %s", least, most)
				}
				b.wantMeasured("sidebus_handler_reachable", 0)
				b.wantLogged("the app does not accept connections", 1)
				b.wantLogged("connection refused", 1)

				b.app.isDown.Store(false)
				pass(settling.MaxBackoff)
				b.wantCounts(queue, nothing)
				mu.Lock()
				slices.Sort(bodies)
				got := slices.Clone(bodies)
				mu.Unlock()
				if !slices.Equal(got, []string{"a/1", "a/2", "a/3"}) {
					t.Errorf("calls: %v", got)
				}
				b.wantMeasured("sidebus_handler_reachable", 1)
				b.wantLogged("the app accepts connections again", 1)

				b.app.isDown.Store(true) // the next outage begins with short pauses
				pass(2 * idleTimeout)
				before := len(b.app.tries())
				b.send(queue, "a/4")
				pass(time.Second)
				if n := len(b.app.tries()) - before; n < 2 {
					t.Errorf("%d tries in the first second", n)
				}
				b.wantLogged("the app does not accept connections", 2)
			})
		})
	}
}

// One message is the probe; the others follow as soon as it has a connection, and not only when it is done.
func TestRECV_13_OneMessageFindsOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.app.isDown.Store(true)
		b.begin(Handler{MaxConcurrent: 2}, app.ServeHTTP)
		b.send("orders", "a", "b", "c")
		pass(time.Minute)
		before := len(b.app.tries())
		pass(settling.MaxBackoff)
		if n := len(b.app.tries()) - before; n < 1 || n > 2 {
			t.Errorf("%d tries in one pause", n)
		}
		b.app.isDown.Store(false)
		pass(settling.MaxBackoff)
		if got := app.seen(); got != "a b" && got != "b a" {
			t.Errorf("calls: %s", got)
		}
	})
}

// If messages were left to the app, the number of credits that a probe needs is unknown; the probe finds it, one
// message at a time.
func TestRECV_13_OneMessageFindsOutBesideThoseLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		var status atomic.Int64
		status.Store(http.StatusAccepted)
		b.begin(Handler{MaxConcurrent: 3, Timeout: time.Hour}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })
		b.send("orders", "left")
		synctest.Wait()
		b.app.isDown.Store(true)
		pass(2 * idleTimeout)
		b.send("orders", "a", "b", "c", "d")
		pass(time.Minute)
		b.wantCounts("orders", "available 4 delayed 0 locked 1 deferred 0 dead 0")
		status.Store(http.StatusOK)
		b.app.isDown.Store(false)
		pass(settling.MaxBackoff)
		b.wantCounts("orders", "available 0 delayed 0 locked 1 deferred 0 dead 0")
		for _, m := range b.peek(semantics.Source{Path: "orders"}) {
			if m.DeliveryCount != 0 {
				t.Errorf("delivery count %d", m.DeliveryCount)
			}
		}
	})
}

// A call that was under way when the app began to refuse is not cut short.
func TestRECV_7_CallsUnderWayGoOnWhileTheAppIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{MaxConcurrent: 2}, app.ServeHTTP)
		b.send("orders", "a")
		app.seen()
		b.app.isDown.Store(true)
		b.send("orders", "b")
		pass(time.Minute)
		b.wantCounts("orders", "available 1 delayed 0 locked 1 deferred 0 dead 0")
		app.answer("a", 200)
		b.wantCounts("orders", "available 1 delayed 0 locked 0 deferred 0 dead 0")
		b.wantMeasured("sidebus_handler_reachable", 0) // that it still answered says nothing of new connections
	})
}

// An app that breaks off a call may have died of the message: that is counted, or it would never end (DC-8).
func TestDC_8_ABrokenCallIsCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		var calls atomic.Int64
		b.begin(Handler{}, func(http.ResponseWriter, *http.Request) {
			calls.Add(1)
			panic(http.ErrAbortHandler)
		})
		b.send("orders", "one")
		synctest.Wait()
		if calls.Load() != 10 {
			t.Errorf("%d calls, want as many as maxDeliveryCount permits", calls.Load())
		}
		b.wantCounts("orders", "available 0 delayed 0 locked 0 deferred 0 dead 1")
		b.wantMeasured("sidebus_pushes_total", 10, "no_answer")
	})
}

func TestSTAT_5_ADisabledQueueIsTriedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		set := func(status semantics.Status) {
			_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: status}, []string{"status"})
			b.ok(err)
		}
		b.begin(Handler{MaxConcurrent: 2}, app.ServeHTTP)
		b.send("orders", "one")
		app.seen()
		set(semantics.StatusReceiveDisabled)
		b.send("orders", "two")
		pass(testLock / 2)
		app.answer("one", 200) // unsettled messages may be settled (STAT-2)
		pass(time.Minute)
		if app.seen() != "one" || app.left() != "" {
			t.Errorf("calls: %s, ended: %s", app.seen(), app.left())
		}
		b.wantCounts("orders", "available 1 delayed 0 locked 0 deferred 0 dead 0")
		b.wantLogged("source cannot be received from", 1)
		set(semantics.StatusActive)
		pass(settling.MaxBackoff)
		app.answer("two", 200)
		b.wantCounts("orders", nothing)
		pass(settling.HealthyAfter)
		b.wantLogged("source can be received from again", 1)
	})
}

// While its source forwards, a handler gets nothing, but the app's unsettled messages are settled.
func TestFWD_2_AForwardingQueueIsTriedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		forwardTo := func(name string) {
			_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{ForwardTo: name}, []string{"forwardTo"})
			b.ok(err)
		}
		b.create("elsewhere", semantics.Options{})
		b.begin(Handler{MaxConcurrent: 2}, app.ServeHTTP)
		b.send("orders", "one")
		app.seen()
		forwardTo("elsewhere")
		pass(testLock / 2)
		if app.left() != "" {
			t.Fatalf("the call ended: %s", app.left())
		}
		app.answer("one", 200)
		pass(time.Minute)
		if app.seen() != "one" || app.left() != "" {
			t.Errorf("calls: %s, ended: %s", app.seen(), app.left())
		}
		b.wantCounts("orders", nothing)
		b.wantLogged("source cannot be received from", 1)
		forwardTo("")
		b.send("orders", "two")
		pass(settling.MaxBackoff)
		app.answer("two", 200)
		b.wantCounts("orders", nothing)
	})
}

func TestENT_8_AQueueThatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{Source: "queues/late"}, app.ServeHTTP)
		pass(10 * time.Minute)
		b.wantLogged("source cannot be received from", 1)
		b.wantLogged("ENTITY_NOT_FOUND", 1)
		b.create("late", semantics.Options{})
		b.send("late", "one")
		pass(settling.MaxBackoff)
		app.answer("one", 200)
		b.wantCounts("late", nothing)
		b.wantLogged("source can be received from again", 1)
	})
}

// Draining: what runs may end, nothing begins, and what has not ended in time is given back uncounted.
func TestRECV_7_Drain(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				app := &held{}
				b.begin(Handler{Source: "queues/" + queue, MaxConcurrent: 2, MaxConcurrentSessions: 2}, app.ServeHTTP)
				b.send(queue, "a/1", "b/1", "c/1", "a/2")
				app.seen()
				b.BeginDrain()
				app.answer("a/1", 200)
				pass(time.Minute)
				if got := app.seen(); got != "a/1 b/1" && got != "b/1 a/1" {
					t.Errorf("calls: %s", got)
				}
				b.stop()
				<-b.over
				if app.left() != "b/1" {
					t.Errorf("ended: %q", app.left())
				}
				b.wantCounts(queue, "available 3 delayed 0 locked 0 deferred 0 dead 0")
				for _, m := range b.peek(semantics.Source{Path: queue}) {
					if m.DeliveryCount != 0 {
						t.Errorf("delivery count %d of %s", m.DeliveryCount, m.Body)
					}
				}
				b.wantMeasured("sidebus_pushes_total", 1, "interrupted")
				b.wantLogged("level=WARN", 0)
			})
		})
	}
}

// When everything has ended in time, the Pusher ends automatically, even if the app is down or the queue does not
// exist.
func TestRECV_7_DrainWithNothingInHand(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{"idle": "queues/orders", "sessions": "queues/tales", "missing": "queues/none"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				b.app.isDown.Store(true)
				b.begin(Handler{Source: source}, answering(200))
				if name == "idle" {
					b.send("orders", "one")
				}
				pass(time.Minute)
				b.BeginDrain()
				<-b.over
				if b.Held() != 0 {
					t.Errorf("%d are held", b.Held())
				}
			})
		})
	}
}

func TestRECV_7_DrainDoesNotWaitForTheAppToComeBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{}, app.ServeHTTP)
		b.send("orders", "one")
		app.seen()
		b.BeginDrain()
		b.app.isDown.Store(true)
		app.answer("one", 500)
		<-b.over
		if m := b.peek(semantics.Source{Path: "orders"})[0]; m.DeliveryCount != 1 || m.Locked {
			t.Errorf("got count %d, locked %t", m.DeliveryCount, m.Locked)
		}
	})
}

// While an app that is slow to refuse is tried, one message is under lock.
func TestRECV_7_TheAppIsSlowToRefuse(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.app.isDown.Store(true)
		b.app.slow.Store(int64(3 * time.Second))
		b.begin(Handler{}, answering(200))
		b.send("orders", "a", "b", "c")
		pass(5 * time.Second)
		for range 200 {
			pass(time.Second / 3)
			counts, err := b.Runtime(t.Context(), semantics.QueueKind, "orders")
			b.ok(err)
			if counts.Locked > 1 || counts.Locked == 1 != (b.Held() == 1) {
				t.Fatalf("%d are locked, %d held", counts.Locked, b.Held())
			}
		}
	})
}

// No call begins once the Broker drains, also of messages that wait for the outcome of a probe.
func TestRECV_7_DrainWhileTheAppIsProbed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{MaxConcurrent: 3, Timeout: time.Hour}, app.ServeHTTP)
		b.send("orders", "left")
		app.answer("left", 202)
		b.app.isDown.Store(true)
		pass(2 * idleTimeout)
		b.send("orders", "a", "b", "c")
		pass(time.Minute)
		b.app.slow.Store(int64(time.Minute))
		pass(2 * settling.MaxBackoff)
		b.wantCounts("orders", "available 1 delayed 0 locked 3 deferred 0 dead 0") // one is tried, and one waits
		b.app.isDown.Store(false)
		b.BeginDrain()
		pass(time.Minute)
		if got := strings.Fields(app.seen()); len(got) != 2 {
			t.Errorf("calls: %v", got)
		}
		b.wantCounts("orders", "available 2 delayed 0 locked 2 deferred 0 dead 0")
	})
}
