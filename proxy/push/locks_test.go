package push

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

func TestLOCK_9_LocksAreRenewedWhileTheCallRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{Timeout: 20 * testLock}, app.ServeHTTP)
		b.send("orders", "one")
		pass(20*testLock - time.Second)
		b.wantCounts("orders", "available 0 delayed 0 locked 1 deferred 0 dead 0")
		app.answer("one", 200)
		b.wantCounts("orders", nothing)
		if app.seen() != "one" {
			t.Errorf("calls: %s", app.seen())
		}
	})
}

func TestLOCK_9_ATimeoutAbandons(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{Timeout: time.Minute}, app.ServeHTTP)
		b.send("orders", "one")
		pass(time.Minute - time.Millisecond)
		if app.seen() != "one" || app.left() != "" {
			t.Errorf("calls: %s, ended: %s", app.seen(), app.left())
		}
		pass(2 * time.Millisecond)
		if app.seen() != "one one" || app.left() != "one" {
			t.Errorf("calls: %s, ended: %s", app.seen(), app.left())
		}
		if m := b.peek(semantics.Source{Path: "orders"})[0]; m.DeliveryCount != 1 {
			t.Errorf("delivery count %d", m.DeliveryCount)
		}
		b.wantMeasured("sidebus_pushes_total", 1, "timeout")
		b.wantLogged("no response within 1m0s", 1)
	})
}

// The app is told, by the end of its request, that what it works on is not its any more.
func TestDAPR_6_ALostLockEndsTheCall(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		inBubble(t, func(t *testing.T, b *bed) {
			app := &held{}
			b.begin(Handler{Source: "queues/" + queue}, app.ServeHTTP)
			b.send(queue, "a/1")
			if app.seen() != "a/1" {
				t.Fatalf("calls: %s", app.seen())
			}
			b.ok(b.DeleteEntity(t.Context(), semantics.QueueKind, queue))
			pass(testLock)
			if app.left() != "a/1" {
				t.Errorf("%s: the call goes on", queue)
			}
			// and the handler begins again
			b.create(queue, semantics.Options{RequiresSession: queue == "tales"}, "requiresSession")
			pass(settling.MaxBackoff)
			b.send(queue, "a/2")
			if app.seen() != "a/1 a/2" {
				t.Errorf("%s: calls: %s", queue, app.seen())
			}
			app.answer("a/2", 200)
		})
	}
}

func TestDAPR_6_TheLockOfOneMessageIsLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{}, app.ServeHTTP)
		b.send("orders", "one", "two")
		app.seen()
		b.store.loses.Store(1)
		pass(testLock)
		gone := app.left()
		if gone != "one" && gone != "two" {
			t.Fatalf("ended: %q", gone)
		}
		b.wantMeasured("sidebus_pushes_total", 1, "lock_lost")
		b.wantLogged("the lock of a message was lost", 1)
		app.answer(strings.Trim(strings.ReplaceAll("one two", gone, ""), " "), 200)
		b.wantMeasured("sidebus_pushes_total", 1, "complete")
	})
}

func TestDAPR_6_TheLockOfASessionIsLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		app := &held{}
		b.begin(Handler{Source: "queues/tales"}, app.ServeHTTP)
		b.send("tales", "a/1")
		app.seen()
		b.store.loses.Store(1)
		pass(testLock)
		if app.left() != "a/1" {
			t.Errorf("ended: %q", app.left())
		}
		b.wantMeasured("sidebus_pushes_total", 1, "lock_lost")
		pass(2 * testLock) // it is not known to be free before
		app.answer("a/1", 200)
		b.wantCounts("tales", nothing)
	})
}

// Who settles with the token and answers 200 all the same has settled it.
func TestSETTLE_2_TheAppHasSettledAlready(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.begin(Handler{}, func(_ http.ResponseWriter, r *http.Request) {
			var properties struct{ LockToken string }
			_ = json.Unmarshal([]byte(r.Header.Get("BrokerProperties")), &properties)
			token, _ := semantics.ParseLockToken(properties.LockToken)
			if _, err := b.Defer(t.Context(), semantics.Source{Path: "orders"}, []semantics.LockToken{token}, nil); err != nil {
				t.Error(err)
			}
		})
		b.send("orders", "one")
		synctest.Wait()
		b.wantCounts("orders", "available 0 delayed 0 locked 0 deferred 1 dead 0")
	})
}
