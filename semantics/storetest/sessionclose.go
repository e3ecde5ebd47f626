package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// The end of a session by its holder.
var sessionCloseTests = []ruleTest{
	testSESS_21_CloseGivesBackInOrder,
	testSESS_21_CloseDelaysNothing,
	testSESS_21_CloseOfWhatHasExpired,
	testSESS_21_CloseExpiresAtOnce,
	testSESS_21_CloseTwice,
}

func testSESS_21_CloseGivesBackInOrder(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 7)
	a := h.accept("a")
	got := h.receive(a, 6)
	h.setAside(a, got[0])
	h.complete(a, got[2])
	h.takeDeferred(a, 1)
	h.abandon(a, got[4])
	h.setState(a, []byte("note"))
	h.closeSession(a)
	h.same(h.messageCounts(), semantics.Runtime{Active: 6, Available: 5, Deferred: 1})
	h.wantCounted(orders, 0, 0, 0, 1, 0, 0)
	h.wantNumbers(h.peek(orders), 1, 2, 4, 5, 6, 7)
	h.sessionLost(a, got...)
	again := h.take("a")
	h.same(string(again.Session.State.Data), "note")
	h.wantNumbers(h.receive(again.Source(), 9), 2, 4, 5, 6, 7)
	h.sessionLost(a, got...)
	h.complete(again.Source(), h.takeDeferred(again.Source(), 1)...)
}

func testSESS_21_CloseDelaysNothing(_ *testing.T, h *fixture) {
	h.createSessions(delaysFor(time.Hour))
	h.sendTo("a", 2)
	for range 3 {
		a := h.accept("a")
		h.wantNumbers(h.receive(a, 9), 1, 2)
		h.closeSession(a)
		h.wantSessions(1, 1, 0)
	}
	a := h.accept("a")
	h.abandon(a, h.receiveOne(a))
	h.closeSession(a) // nor does it end a delay
	h.wantSessions(1, 0, 0)
	h.same(h.row(orders, 1).VisibleAt, h.in(time.Hour))
}

func testSESS_21_CloseOfWhatHasExpired(_ *testing.T, h *fixture) {
	h.createSessions(buriesExpired, deliversAtMost(1))
	h.send(of("a", lasting("m", 1000*ms)), part("a", "m"))
	a := h.accept("a")
	h.receive(a, 2)
	h.Advance(1000 * ms)
	h.wantCounts(0, 2, 0) // it is locked (TTL-9)
	h.closeSession(a)
	h.wantCounts(1, 0, 1)
	dead := h.row(deadOrders, 1)
	h.same([]any{dead.DeadLetterReason, dead.DeliveryCount, dead.DeadLetteredAt}, []any{"TTLExpiredException", 0, h.Now()})
	h.pass(h.accept("a"), 2)
}

func testSESS_21_CloseExpiresAtOnce(_ *testing.T, h *fixture) {
	h.createSessions(holdsAtMost(1))
	h.send(of("a", lasting("m", 1000*ms)))
	a := h.accept("a")
	h.receiveOne(a)
	h.Advance(1000 * ms)
	h.refusedSend(semantics.EntityFull, part("a", "m"))
	h.closeSession(a)
	h.sendTo("a", 1) // the queue has free capacity without a call since then
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 2)
}

func testSESS_21_CloseTwice(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	a := h.accept("a")
	h.closeSession(a)
	for range 2 {
		h.refused(semantics.SessionLockLost, func() error { return h.broker.CloseSession(t.Context(), a) })
	}
	b := h.accept("a")
	h.refused(semantics.SessionLockLost, func() error { return h.broker.CloseSession(t.Context(), a) })
	h.pass(b, 1)
	late := h.accept("b")
	h.Advance(lock)
	h.wantCode(h.broker.CloseSession(t.Context(), late), semantics.SessionLockLost) // too late, it is counted by now
}
