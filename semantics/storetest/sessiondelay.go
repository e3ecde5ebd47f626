package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Delayed messages of sessions.
var sessionDelayTests = []ruleTest{
	testSETTLE_11_DelayHoldsUpItsSession,
	testSETTLE_11_DelayHoldsUpNoneBefore,
	testSETTLE_11_SkipOrder,
	testSETTLE_11_SkipOrderComesBackToItsPlace,
	testSETTLE_11_SkipOrderIsOfOneAbandon,
	testSETTLE_11_RedeliveryDelayHoldsUp,
	testSETTLE_11_RemovalEndsTheHoldUp,
	testSETTLE_11_DeferredHoldsUpNobody,
	testSETTLE_11_DelayOutlivesTheHolder,
}

func testSETTLE_11_DelayHoldsUpItsSession(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	h.sendTo("b", 1)
	a, b := h.accept("a"), h.accept("b")
	h.abandonFor(1000*ms, a, h.receiveOne(a))
	h.receiveNone(a)
	h.sendTo("a", 1)
	h.receiveNone(a)
	h.pass(b, 4) // which it does not concern
	h.same(h.messageCounts(), semantics.Runtime{Active: 4, Available: 4, Delayed: 1})
	row := h.sessionRow("a")
	h.same([]int64{row.Available, row.Delayed, row.Locked}, []int64{4, 1, 0})
	h.Advance(1000*ms - ms)
	h.receiveNone(a)
	h.Advance(ms)
	h.wantNumbers(h.receive(a, 9), 1, 2, 3, 5)
}

func testSETTLE_11_DelayHoldsUpNoneBefore(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 6)
	a := h.accept("a")
	got := h.receive(a, 5)
	h.abandonFor(1000*ms, a, got[2])
	h.receiveNone(a)
	h.complete(a, got[4]) // what is in flight goes on
	h.abandon(a, got[0], got[3])
	h.wantNumbers(h.receive(a, 9), 1) // and 4 is behind the third
	h.abandonFor(2000*ms, a, got[1])
	h.Advance(1000 * ms)
	h.receiveNone(a) // now the second is first
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(a, 9), 2, 3, 4, 6)
}

// skipFor abandons messages with a delay that does not hold up the others.
func (h *fixture) skipFor(delay time.Duration, source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.Abandon(h.t.Context(), source, tokensOf(messages...), semantics.AbandonOptions{Delay: &delay, SkipOrder: true})
	h.settled(codes, err)
}

func testSETTLE_11_SkipOrder(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	h.skipFor(1000*ms, a, h.receiveOne(a))
	h.same(h.row(orders, 1).VisibleAt, h.in(1000*ms))
	h.closeSession(a)
	h.wantSessions(1, 1, 0)
	a = h.wantNext("a")[0]
	h.pass(a, 2, 3)
	h.receiveNone(a)
	h.closeSession(a)
	h.wantNext() // it is delayed all the same
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 1)
}

func testSETTLE_11_SkipOrderComesBackToItsPlace(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(3))
	h.sendTo("a", 6)
	a := h.accept("a")
	h.skipFor(1000*ms, a, h.receive(a, 2)...)
	got := h.receive(a, 2)
	h.wantNumbers(got, 3, 4)
	h.abandonFor(3000*ms, a, got[1]) // this one holds up those behind it
	h.receiveNone(a)
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(a, 9), 1, 2) // before it, as many as may be in flight
	h.complete(a, got[0])
	h.receiveNone(a)
	h.Advance(2000 * ms)
	h.wantNumbers(h.receive(a, 9), 4)
}

func testSETTLE_11_SkipOrderIsOfOneAbandon(_ *testing.T, h *fixture) {
	h.createSessions(delaysFor(1000 * ms))
	h.sendTo("a", 2)
	a := h.accept("a")
	h.skipFor(10*ms, a, h.receiveOne(a))
	h.Advance(10 * ms)
	h.same(h.receiveOne(a).SequenceNumber, int64(1))
	h.Advance(lock - 10*ms) // the end of the lock delays it again, and says nothing of order
	h.wantNext()
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 1, 2)
}

func testSETTLE_11_RedeliveryDelayHoldsUp(_ *testing.T, h *fixture) {
	h.createSessions(delaysFor(1000 * ms))
	h.sendTo("a", 3)
	a := h.accept("a")
	h.abandon(a, h.receiveOne(a))
	h.receiveNone(a)
	h.Advance(1000 * ms)
	got := h.receiveOne(a)
	h.same([]int64{got.SequenceNumber, int64(got.DeliveryCount)}, []int64{1, 2})
	h.abandonFor(0, a, got) // what is said wins
	got = h.receiveOne(a)
	h.same(got.SequenceNumber, int64(1))
	codes, err := h.broker.Abandon(h.t.Context(), a, tokensOf(got), semantics.AbandonOptions{SkipOrder: true})
	h.settled(codes, err)
	h.same(h.row(orders, 1).VisibleAt, h.in(1000*ms))
	h.wantNumbers(h.receive(a, 9), 2, 3)
}

func testSETTLE_11_RemovalEndsTheHoldUp(_ *testing.T, h *fixture) {
	for name, remove := range map[string]func(a semantics.Source){
		"purge":  func(semantics.Source) { h.purge(sessionOf("a"), broker.PurgeOptions{MaxMessages: 1}) },
		"delete": func(a semantics.Source) { h.deleteNumbers(a, 1) },
		"expiry": func(semantics.Source) { h.Advance(1000 * ms) },
	} {
		for _, held := range []bool{false, true} {
			h.createSessions()
			h.send(of("a", lasting("m", 1001*ms)), part("a", "m"))
			h.Advance(ms)
			a := h.accept("a")
			h.abandonFor(time.Hour, a, h.receiveOne(a))
			h.receiveNone(a)
			if !held {
				h.closeSession(a)
				h.wantNext()
			}
			remove(orders)
			if !held {
				a = h.wantNext("a")[0]
			}
			if got := numbersOf(h.receive(a, 9)); len(got) != 1 || got[0] != 2 {
				h.t.Errorf("%s with a holder %v: got %v, want 2", name, held, got)
			}
			h.drop()
		}
	}
}

func testSETTLE_11_DeferredHoldsUpNobody(_ *testing.T, h *fixture) {
	h.createSessions(delaysFor(time.Hour))
	h.sendTo("a", 2)
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	h.abandonFor(time.Hour, a, h.takeDeferred(a, 1)...)
	h.same(h.messageCounts(), semantics.Runtime{Active: 2, Available: 1, Deferred: 1})
	h.pass(a, 2)
	h.takeDeferred(a, 1)
}

func testSETTLE_11_DelayOutlivesTheHolder(_ *testing.T, h *fixture) {
	for _, end := range []func(a semantics.Source){
		func(a semantics.Source) { h.closeSession(a) },
		func(semantics.Source) { h.Advance(lock) },
	} {
		h.createSessions()
		h.sendTo("a", 3)
		a := h.accept("a")
		got := h.receive(a, 2)
		h.abandonFor(2*lock, a, got[1])
		visible := h.in(2 * lock)
		end(a) // with the first in flight
		b := h.wantNext("a")[0]
		h.pass(b, 1)
		h.receiveNone(b)
		h.closeSession(b)
		h.wantNext()
		h.Advance(visible.Sub(h.Now()) - ms)
		h.wantNext()
		h.Advance(ms)
		h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 2, 3)
		h.drop()
	}
}
