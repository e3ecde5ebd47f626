package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Waiting for messages of a held session, and what Broker builds its waits on.
var sessionReceiveWaitTests = []ruleTest{
	testRECV_5_SessionWokenBySend,
	testRECV_5_SessionWokenByItsOwnOnly,
	testRECV_5_SessionWokenBySettlement,
	testRECV_5_SessionWokenByWhatMakesReceivable,
	testRECV_5_SessionWokenByTime,
	testSESS_22_LossEndsTheWait,
	testSESS_22_LockEndEndsTheWait,
	testRECV_7_CancelledWaitInASession,
	testRECV_10_WatchOfSessions,
	testRECV_10_WatchOfANamedSession,
	testRECV_10_WatchOfAHeldSession,
	testRECV_10_WatchOfAllHeldSessions,
	testRECV_10_PassOnOfSessions,
	testRECV_5_RecheckOfAccepts,
	testRECV_5_RecheckInASession,
}

func testRECV_5_SessionWokenBySend(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	s := h.newSidecar(h.Store)
	done := s.waiting(t.Context(), a, 10)
	h.sendTo("a", 3)
	h.awaitNumbers(done, 1, 2, 3)
	done = s.waiting(t.Context(), a, 1)
	h.sendTo("a", 2)
	h.awaitNumbers(done, 4)
	h.wantCounts(1, 4, 0)
}

func testRECV_5_SessionWokenByItsOwnOnly(t *testing.T, h *fixture) {
	h.createSessions()
	a, b := h.accept("a"), h.accept("b")
	ofA, ofB := h.elsewhere().waiting(t.Context(), a, 9), h.elsewhere().waiting(t.Context(), b, 9)
	next := h.acceptingNext()
	h.sendTo("c", 1)
	h.awaitSession(next, "c")
	h.sendTo("b", 1)
	h.awaitNumbers(ofB, 2)
	h.sendTo("a", 1)
	h.awaitNumbers(ofA, 3)
}

func testRECV_5_SessionWokenBySettlement(t *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1), deliversAtMost(1000))
	h.sendTo("a", 9)
	a := h.accept("a")
	held := h.receiveOne(a)
	want := int64(1)
	s := h.newSidecar(h.Store)
	for _, c := range []struct {
		settle func(source semantics.Source, messages ...*semantics.Received)
		next   int64 // from the one that was settled on
	}{
		{h.complete, 1},
		{h.abandon, 0},
		{h.release, 0},
		{h.deadLetterIn, 1},
		{h.setAside, 1},
		{func(source semantics.Source, messages ...*semantics.Received) {
			h.skipFor(time.Hour, source, messages...)
		}, 1},
	} {
		done := s.waiting(t.Context(), a, 9)
		c.settle(a, held)
		want += c.next
		held = h.awaitNumbers(done, want).Messages[0]
	}
	done := s.waiting(t.Context(), a, 9)
	h.update(sessionInFlight(2), "sessionInFlight")
	h.awaitNumbers(done, want+1)
}

func testRECV_5_SessionWokenByWhatMakesReceivable(t *testing.T, h *fixture) {
	for name, c := range map[string]struct{ prepare, wake func(a semantics.Source) }{
		"reactivate": {
			func(a semantics.Source) { h.setAside(a, h.receive(a, 9)...) },
			func(semantics.Source) { h.ok(h.reactivate(orders, 1)) },
		},
		"reactivate alone": {
			func(a semantics.Source) { h.setAside(a, h.receive(a, 9)...) },
			func(a semantics.Source) { h.ok(h.reactivate(a, 1)) },
		},
		"resubmit": {
			func(a semantics.Source) { h.deadLetterIn(a, h.receive(a, 9)...) },
			func(semantics.Source) { h.resubmit(broker.ResubmitOptions{}) },
		},
		"unblock": {
			func(a semantics.Source) {
				h.update(blocksOnDeadLetter, "sessionOnDeadLetter")
				h.deadLetterIn(a, h.receiveOne(a))
			},
			func(semantics.Source) { h.unblock("a") },
		},
		"delete of what holds up": {
			func(a semantics.Source) { h.abandonFor(time.Hour, a, h.receiveOne(a)) },
			func(semantics.Source) { h.deleteNumbers(orders, 1) },
		},
	} {
		h.createSessions()
		h.sendTo("a", 2)
		a := h.accept("a")
		c.prepare(a)
		done := h.elsewhere().waiting(t.Context(), a, 1)
		c.wake(a)
		select {
		case o := <-done:
			h.ok(o.err)
			h.same(len(o.delivery.Messages), 1)
		case <-time.After(patience):
			t.Errorf("%s does not wake", name)
		}
		h.drop()
	}
}

func testRECV_5_SessionWokenByTime(t *testing.T, h *fixture) {
	for name, prepare := range map[string]func(a semantics.Source){
		"end of a delay": func(a semantics.Source) {
			h.sendTo("a", 2)
			h.abandonFor(30*ms, a, h.receiveOne(a))
		},
		"activation": func(semantics.Source) { h.send(of("a", later("m", h.in(30*ms)))) },
		"expiry of what holds up": func(a semantics.Source) {
			h.send(of("a", lasting("m", 30*ms)), part("a", "m"))
			h.abandonFor(time.Hour, a, h.receiveOne(a))
		},
	} {
		h.createSessions()
		a := h.accept("a")
		prepare(a)
		done := h.elsewhere().waiting(t.Context(), a, 1)
		h.Advance(30 * ms)
		select {
		case o := <-done:
			h.ok(o.err)
			h.same(len(o.delivery.Messages), 1)
		case <-time.After(patience):
			t.Errorf("%s is not seen", name)
		}
		h.drop()
	}
}

func testSESS_22_LossEndsTheWait(t *testing.T, h *fixture) {
	h.createSessions()
	for name, lose := range map[string]func(a semantics.Source){
		"close":                              func(a semantics.Source) { h.closeSession(a) },
		"lock end that another sidecar sees": func(semantics.Source) { h.Advance(lock); h.runtime() },
		"another that takes it":              func(semantics.Source) { h.Advance(lock); h.closeSession(h.accept("a")) },
	} {
		a := h.accept("a")
		done := h.elsewhere().waiting(t.Context(), a, 1)
		lose(a)
		select {
		case o := <-done:
			h.wantCode(o.err, semantics.SessionLockLost)
		case <-time.After(patience):
			t.Errorf("%s does not end the wait", name)
		}
	}
}

func testSESS_22_LockEndEndsTheWait(t *testing.T, h *fixture) {
	// No call wakes the receive: it must find out, by its own clock, that the lock has expired.
	h.createSessions(locksFor(30 * ms))
	done := h.elsewhere().waiting(t.Context(), h.accept("a"), 1)
	h.Advance(30 * ms)
	h.wantCode(h.await(done).err, semantics.SessionLockLost)
}

func testRECV_7_CancelledWaitInASession(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	ctx, cancel := context.WithCancel(t.Context())
	done := h.elsewhere().waiting(ctx, a, 10)
	cancel()
	h.wantCode(h.await(done).err, semantics.Cancelled)
	h.sendTo("a", 1)
	h.wantCounts(1, 0, 0)
	h.same(h.receiveOne(a).DeliveryCount, 1) // the session is held all the while
}

// registerNext registers for one wake-up as an accept that found nothing does.
func (h *fixture) registerNext() {
	h.t.Helper()
	session, _, err := h.Store.AcceptNextSession(h.t.Context(), orders.Path, semantics.RegisterIfEmpty)
	h.ok(err)
	h.same(session == nil, true)
}

// subscribe is a Watch without registration.
func (h *fixture) subscribe(source semantics.Source) semantics.Watch {
	h.t.Helper()
	w, err := h.Store.Watch(h.t.Context(), source)
	h.ok(err)
	h.t.Cleanup(w.Close)
	return w
}

func testRECV_10_WatchOfSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	w := h.subscribe(orders)
	h.registerNext()
	h.sendEach("c", "d")
	h.awaitWake(w)
	held := h.wantNext("c", "d")
	h.registerNext()
	h.closeSession(held[1])
	h.awaitWake(w)
}

func testRECV_10_WatchOfANamedSession(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("full", 1)
	for _, id := range []string{"empty", "full"} {
		held := h.accept(id)
		w := h.subscribe(sessionOf(id))
		for _, end := range []func(){
			func() { h.closeSession(held) },
			func() { h.Advance(lock); h.runtime() },
		} {
			h.wantCode(second(h.Store.AcceptSession(h.t.Context(), "orders", id)), semantics.SessionCannotBeLocked)
			end()
			h.awaitWake(w)
			held = h.accept(id)
		}
	}
}

func testRECV_10_WatchOfAHeldSession(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	w := h.watch(a)
	for range 2 {
		h.sendTo("a", 2)
		h.awaitWake(w)
		h.complete(a, h.receive(a, 9)...)
		h.registerEmpty(a)
	}
	h.closeSession(a)
	h.awaitWake(w)
}

func testRECV_10_WatchOfAllHeldSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	w := h.subscribe(semantics.Source{Path: orders.Path, HeldSessions: true})
	all := []semantics.Source{h.accept("a"), h.accept("b"), h.accept("c")}
	for range 2 {
		for _, held := range all {
			h.registerEmpty(held)
		}
		h.sendEach("a", "b", "c")
		h.awaitWoken(w, all...)
		for _, held := range all {
			h.complete(held, h.receiveOne(held))
		}
	}
	h.registerEmpty(all[1])
	h.closeSession(all[1])
	h.awaitWoken(w, all[1])
}

// awaitWoken waits until a watch has told of sessions.
func (h *fixture) awaitWoken(w semantics.Watch, sessions ...semantics.Source) {
	h.t.Helper()
	missing := map[semantics.LockToken]bool{}
	for _, held := range sessions {
		missing[held.SessionLock] = true
	}
	for len(missing) > 0 {
		if h.awaitWake(w) == 0 {
			h.t.Fatal("woken as if wake-ups had been lost")
		}
		for _, lock := range w.Sessions() {
			delete(missing, lock)
		}
	}
}

func testRECV_10_PassOnOfSessions(t *testing.T, h *fixture) {
	h.createSessions()
	w := h.subscribe(orders)
	h.registerNext()
	h.sendEach("a", "b")
	h.awaitWake(w)
	session, _, err := h.Store.AcceptNextSession(t.Context(), "orders", semantics.RegisterAlways) // leaves one behind
	h.ok(err)
	h.same(session.ID, "a")
	h.ok(h.Store.PassOn(t.Context(), orders))
	h.awaitWake(w)

	// There is nothing to pass on, and nothing to pass it on for.
	b := h.wantNext("b")[0]
	for _, source := range []semantics.Source{orders, b, sessionOf("b"), unheld(), sessionOf("never seen")} {
		h.ok(h.Store.PassOn(t.Context(), source))
	}
	h.drop()
	for _, source := range []semantics.Source{orders, b, sessionOf("b")} {
		h.ok(h.Store.PassOn(t.Context(), source))
	}
}

// recheckNext is how long an accept that finds nothing may sleep.
func (h *fixture) recheckNext() time.Duration {
	h.t.Helper()
	session, recheck, err := h.Store.AcceptNextSession(h.t.Context(), orders.Path, semantics.RegisterNever)
	h.ok(err)
	h.same(session == nil, true)
	return recheck
}

func testRECV_5_RecheckOfAccepts(_ *testing.T, h *fixture) {
	for name, prepare := range map[string]func(){
		"lock end":   func() { h.accept("a"); h.Advance(lock - 700*ms) },
		"activation": func() { h.send(of("a", later("m", h.in(700*ms)))) },
		"delay": func() {
			h.sendTo("a", 1)
			a := h.accept("a")
			h.abandonFor(700*ms, a, h.receiveOne(a))
			h.closeSession(a)
		},
	} {
		h.createSessions()
		h.same(h.recheckNext(), 10*time.Second)
		prepare()
		if got := h.recheckNext(); got != 700*ms {
			h.t.Errorf("%s: recheck after %s, want 700ms", name, got)
		}
		h.drop()
	}
	// What is over but holds nothing up must not make waiting accepts look all the time.
	h.createSessions()
	h.send(of("a", lasting("m", 1000*ms)))
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	h.closeSession(a)
	h.Advance(time.Hour)
	h.same(h.recheckNext(), 10*time.Second)
}

func testRECV_5_RecheckInASession(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	h.same(h.recheck(a), 10*time.Second)
	h.Advance(lock - 700*ms)
	h.same(h.recheck(a), 700*ms) // its own lock ends
	h.renewSession(a)
	h.sendTo("a", 2)
	h.abandonFor(300*ms, a, h.receiveOne(a))
	h.same(h.recheck(a), 300*ms)
	h.send(of("a", later("m", h.in(200*ms))))
	h.same(h.recheck(a), 200*ms)
}
