package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// What else ends the wait for a session.
var sessionWaitEndTests = []ruleTest{
	testSESS_11_WaitEndsWithClose,
	testSESS_11_WaitEndsWithTheLock,
	testSESS_11_WaitEndsWithUnblock,
	testRECV_7_CancelledWaitHoldsNoSession,
	testRECV_7_CancelAgainstSessionSend,
	testENT_8_DeleteEndsSessionWaits,
	testSTAT_5_DisablingEndsSessionWaits,
	testSTAT_5_ChangesOfTheQueueWakeSessionWaits,
	testRR_5_ForbiddingEndsWaits,
}

func testSESS_11_WaitEndsWithClose(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a") // there are no messages in it
	s := h.elsewhere()
	for range 2 {
		done := s.accepting(t.Context(), "a")
		h.sendEach("a", "b")
		h.closeSession(h.accept("b")) // which is another
		h.closeSession(a)
		a = h.awaitSession(done, "a")
	}
}

func testSESS_11_WaitEndsWithTheLock(t *testing.T, h *fixture) {
	h.createSessions(locksFor(30 * ms))
	h.accept("a")
	done := h.elsewhere().accepting(t.Context(), "a")
	h.Advance(30 * ms)
	h.awaitSession(done, "a")
}

func testSESS_11_WaitEndsWithUnblock(t *testing.T, h *fixture) {
	h.blocked()
	done := h.elsewhere().accepting(t.Context(), "a")
	h.unblock("a")
	h.wantNumbers(h.receive(h.awaitSession(done, "a"), 9), 2, 3)
}

func testRECV_7_CancelledWaitHoldsNoSession(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	for _, id := range []string{"", "a"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := h.elsewhere().accepting(ctx, id)
		cancel()
		h.wantCode(h.awaitAccept(done).err, semantics.Cancelled)
	}
	h.sendTo("b", 1)
	h.closeSession(a)
	h.wantSessions(1, 1, 0)
}

func testRECV_7_CancelAgainstSessionSend(t *testing.T, h *fixture) {
	h.createSessions()
	s := h.newSidecar(h.Store)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		done := s.accepting(ctx, "")
		go cancel()
		number := h.sendTo("a", 1)
		switch a := h.awaitAccept(done); {
		case a.err == nil:
			h.same(a.acceptance.Session.ID, "a")
			h.ok(a.acceptance.Undelivered(ctx)) // the caller is gone by now
		default:
			h.same(semantics.CodeOf(a.err), semantics.Cancelled) // which is not each time
		}
		h.wantSessions(1, 1, 0)
		a := h.accept("a")
		h.pass(a, number)
		h.closeSession(a)
	}
}

func testENT_8_DeleteEndsSessionWaits(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	s, other := h.newSidecar(h.Store), h.elsewhere()
	next, named := s.accepting(t.Context(), ""), other.accepting(t.Context(), "a")
	received := h.newSidecar(h.Store).waiting(t.Context(), a, 1)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	h.wantCode(h.awaitAccept(next).err, semantics.EntityNotFound)
	h.wantCode(h.awaitAccept(named).err, semantics.EntityNotFound)
	h.wantCode(h.await(received).err, semantics.EntityNotFound)
}

func testSTAT_5_DisablingEndsSessionWaits(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusReceiveDisabled} {
		next, named := h.acceptingNext(), h.elsewhere().accepting(t.Context(), "a")
		received := h.newSidecar(h.Store).waiting(t.Context(), a, 1)
		h.setStatus(status)
		h.wantCode(h.awaitAccept(next).err, semantics.EntityDisabled)
		h.wantCode(h.awaitAccept(named).err, semantics.EntityDisabled)
		h.wantCode(h.await(received).err, semantics.EntityDisabled)
		h.setStatus(semantics.StatusActive)
	}
	s := h.newSidecar(h.Store)
	done := s.accepting(t.Context(), "")
	h.setStatus(semantics.StatusSendDisabled) // which does not concern accepts
	s.awaitEmpty()
	h.setStatus(semantics.StatusActive)
	h.sendTo("b", 1)
	h.awaitSession(done, "b")
}

func testRR_5_ForbiddingEndsWaits(t *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	next, named := h.acceptingNext(), h.elsewhere().accepting(t.Context(), "a")
	h.update(forbidsAcceptNext, "acceptNext")
	h.wantCode(h.awaitAccept(next).err, semantics.InvalidOperation)
	h.closeSession(a)
	h.awaitSession(named, "a")
}

// What Broker relies on: every wait looks again, by its subscription and not only when it is time to.
func testSTAT_5_ChangesOfTheQueueWakeSessionWaits(_ *testing.T, h *fixture) {
	for name, change := range map[string]func(){
		"update": func() { h.setStatus(semantics.StatusReceiveDisabled) },
		"delete": func() { h.drop() },
	} {
		h.createSessions()
		a := h.accept("a")
		watches := map[string]semantics.Watch{"held": h.watch(a), "next": h.subscribe(orders), "named": h.subscribe(sessionOf("a"))}
		h.registerNext()
		h.wantCode(second(h.Store.AcceptSession(h.t.Context(), "orders", "a")), semantics.SessionCannotBeLocked)
		change()
		for of, w := range watches {
			select {
			case <-w.C():
			case <-time.After(patience):
				h.t.Errorf("%s wakes no waiter of the %s session", name, of)
			}
		}
		if name != "delete" {
			h.drop()
		}
	}
}
