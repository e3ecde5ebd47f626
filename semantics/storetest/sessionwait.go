package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Waiting for a session. A wake-up that is lost makes these tests fail: the wait itself looks again only after
// patience.
var sessionWaitTests = []ruleTest{
	testSESS_12_WokenBySend,
	testSESS_12_WokenByClose,
	testSESS_12_WokenByLockEnd,
	testSESS_12_WokenByWhatMakesReady,
	testSESS_12_WokenByTime,
	testSESS_12_OneSessionForManyWaiters,
	testSESS_12_EveryWaiterItsSession,
	testSESS_12_NotWokenForOthers,
}

type accepted struct {
	acceptance *broker.Acceptance
	err        error
}

// accepting starts an accept and returns when it has found nothing and waits.
func (s *sidecar) accepting(ctx context.Context, id string) <-chan accepted {
	s.h.t.Helper()
	done := make(chan accepted, 1)
	s.awaitFirstLook(ctx, func(ctx context.Context) {
		a, err := s.broker.AcceptSession(ctx, orders.Path, broker.AcceptOptions{SessionID: id, MaxWait: time.Minute})
		done <- accepted{a, err}
	})
	return done
}

// elsewhere makes one more sidecar, over another Store if there is such a thing.
func (h *fixture) elsewhere() *sidecar {
	if h.Peer == nil {
		return h.newSidecar(h.Store)
	}
	return h.newSidecar(h.Peer())
}

// acceptingNext is accepting in another sidecar.
func (h *fixture) acceptingNext() <-chan accepted {
	h.t.Helper()
	return h.elsewhere().accepting(h.t.Context(), "")
}

// awaitAccept returns the outcome of an accept that must end now.
func (h *fixture) awaitAccept(done <-chan accepted) accepted {
	h.t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(patience):
		h.t.Fatal("the accept still waits")
		return accepted{}
	}
}

// awaitSession returns the session that an accept must get now.
func (h *fixture) awaitSession(done <-chan accepted, want string) semantics.Source {
	h.t.Helper()
	a := h.awaitAccept(done)
	h.ok(a.err)
	if a.acceptance.Session == nil {
		h.t.Fatalf("the accept got no session, want %q", want)
	}
	h.same(a.acceptance.Session.ID, want)
	return a.acceptance.Source()
}

func testSESS_12_WokenBySend(t *testing.T, h *fixture) {
	h.createSessions()
	s := h.newSidecar(h.Store)
	for n := range int64(3) {
		done := s.accepting(t.Context(), "")
		h.sendTo("a", 1)
		a := h.awaitSession(done, "a")
		h.pass(a, n+1)
		h.closeSession(a)
	}
}

func testSESS_12_WokenByClose(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	h.receiveOne(a)
	done := h.acceptingNext()
	h.closeSession(a)
	h.wantNumbers(h.receive(h.awaitSession(done, "a"), 9), 1, 2)

	b := h.take("b")
	h.sendTo("b", 1)
	done = h.acceptingNext()
	h.ok(b.Undelivered(h.t.Context()))
	h.awaitSession(done, "b")
}

func testSESS_12_WokenByLockEnd(_ *testing.T, h *fixture) {
	// No call wakes the accept: it must look again, by its own clock, when the lock expires.
	h.createSessions(locksFor(30 * ms))
	h.sendTo("a", 1)
	h.receiveOne(h.accept("a"))
	done := h.acceptingNext()
	h.Advance(30 * ms)
	h.same(h.receiveOne(h.awaitSession(done, "a")).DeliveryCount, 2)
}

func testSESS_12_WokenByWhatMakesReady(_ *testing.T, h *fixture) {
	for name, c := range map[string]struct{ prepare, wake func() }{
		"reactivate": {
			func() { a := h.accept("a"); h.setAside(a, h.receive(a, 9)...); h.closeSession(a) },
			func() { h.ok(h.reactivate(orders, 1)) },
		},
		"resubmit": {
			func() { a := h.accept("a"); h.deadLetterIn(a, h.receive(a, 9)...); h.closeSession(a) },
			func() { h.resubmit(broker.ResubmitOptions{}) },
		},
		"unblock": {
			func() {
				h.update(blocksOnDeadLetter, "sessionOnDeadLetter")
				a := h.accept("a")
				h.deadLetterIn(a, h.receiveOne(a))
				h.closeSession(a)
			},
			func() { h.unblock("a") },
		},
		"delete of what holds up": {
			func() { a := h.accept("a"); h.abandonFor(time.Hour, a, h.receiveOne(a)); h.closeSession(a) },
			func() { h.deleteNumbers(orders, 1) },
		},
		"purge of what holds up": {
			func() { a := h.accept("a"); h.abandonFor(time.Hour, a, h.receiveOne(a)); h.closeSession(a) },
			func() { h.Advance(ms); h.purge(sessionOf("a"), broker.PurgeOptions{MaxMessages: 1}) },
		},
		"lock end that another sidecar sees": {
			func() { h.receiveOne(h.accept("a")) },
			func() { h.Advance(lock); h.runtime() },
		},
	} {
		h.createSessions()
		h.sendTo("a", 2)
		c.prepare()
		done := h.acceptingNext()
		c.wake()
		select {
		case a := <-done:
			h.ok(a.err)
			h.same(a.acceptance.Session.ID, "a")
		case <-time.After(patience):
			h.t.Errorf("%s does not wake", name)
		}
		h.drop()
	}
}

func testSESS_12_WokenByTime(_ *testing.T, h *fixture) {
	for name, prepare := range map[string]func(){
		"end of a delay": func() {
			h.sendTo("a", 2)
			a := h.accept("a")
			h.abandonFor(30*ms, a, h.receiveOne(a))
			h.closeSession(a)
		},
		"activation": func() { h.send(of("a", later("m", h.in(30*ms)))) },
		"expiry of what holds up": func() {
			h.send(of("a", lasting("m", 30*ms)), part("a", "m"))
			a := h.accept("a")
			h.abandonFor(time.Hour, a, h.receiveOne(a))
			h.closeSession(a)
		},
	} {
		h.createSessions()
		prepare()
		done := h.acceptingNext()
		h.Advance(30 * ms)
		select {
		case a := <-done:
			h.ok(a.err)
			h.same(a.acceptance.Session.ID, "a")
			h.receiveOne(a.acceptance.Source())
		case <-time.After(patience):
			h.t.Errorf("%s is not seen", name)
		}
		h.drop()
	}
}

func testSESS_12_OneSessionForManyWaiters(t *testing.T, h *fixture) {
	h.races()
	h.createSessions()
	const waiters = 5
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan accepted, waiters)
	s := h.newSidecar(h.Store)
	for range waiters {
		wait := s.accepting(ctx, "")
		go func() { done <- <-wait }()
	}
	h.sendTo("a", 7) // one session, however many messages
	h.awaitSession(done, "a")
	cancel()
	for range waiters - 1 {
		h.wantCode(h.awaitAccept(done).err, semantics.Cancelled)
	}
	h.wantSessions(1, 0, 1)
}

func testSESS_12_EveryWaiterItsSession(t *testing.T, h *fixture) {
	h.races()
	h.createSessions()
	stores := []semantics.Store{h.Store}
	if h.Peer != nil {
		stores = append(stores, h.Peer())
	}
	const waiters = 6
	done := make(chan accepted, waiters)
	sidecars := make([]*sidecar, len(stores))
	for i, store := range stores {
		sidecars[i] = h.newSidecar(store)
	}
	for i := range waiters {
		wait := sidecars[i%len(sidecars)].accepting(t.Context(), "")
		go func() { done <- <-wait }()
	}
	h.sendEach("a", "b", "c", "d", "e", "f") // one call must wake them all
	owners := map[string]int{}
	for range waiters {
		a := h.awaitAccept(done)
		h.ok(a.err)
		if a.acceptance.Session == nil {
			h.t.Fatalf("an accept has got no session in time; others have %v", owners)
		}
		owners[a.acceptance.Session.ID]++
	}
	h.same(owners, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1})
}

func testSESS_12_NotWokenForOthers(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	done := h.acceptingNext()
	h.sendTo("a", 1)                             // it is held
	h.send(of("b", later("m", h.in(time.Hour)))) // and this is not there yet
	b := h.accept("b")
	h.setState(b, []byte("note"))
	h.closeSession(b)
	h.pass(a, 1)
	h.closeSession(a)
	h.sendTo("c", 1)
	h.awaitSession(done, "c")
}
