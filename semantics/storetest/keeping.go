package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// How long dead letters are kept.
var keepingTests = []ruleTest{
	testTTL_19_DeadLetterTTL,
	testTTL_19_EveryWayIntoTheDeadLetterQueue,
	testTTL_19_EveryLookClearsAway,
	testTTL_19_LockedIsKeptUntilItsLockEnds,
	testTTL_19_OfTheTimeOfDeadLettering,
	testTTL_19_WhateverItsState,
	testTTL_19_ManyAtOnce,
	testDLQ_16_KeepsItsCountAndTimes,
	testDC_7_CountOfItsOwn,
}

func testTTL_19_DeadLetterTTL(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(5000*ms), livesFor(1000*ms)) // a lifetime of the message is nothing to it
	h.deadLetterTexts("a")
	h.Advance(ms)
	h.deadLetterTexts("b")
	h.Advance(5000*ms - 2*ms)
	h.wantNumbers(h.peek(deadOrders), 1, 2)
	h.same(h.row(deadOrders, 1).Expired, false)
	h.release(deadOrders, h.receiveOne(deadOrders))
	h.Advance(ms)
	h.wantNumbers(h.receive(deadOrders, 9), 2)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 1})
	h.same(h.runtime().SizeInBytes, int64(2)) // its bytes are free
}

func testTTL_19_EveryWayIntoTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(5000*ms), buriesExpired, deliversAtMost(1))
	h.send(lasting("expires", 1000*ms), text("by hand"), text("abandoned"), text("lock ends"), text("stays"))
	h.deadLetter(h.takeNumbers(orders, 2)...)
	h.abandon(orders, h.takeNumbers(orders, 3)...)
	h.takeNumbers(orders, 4)
	h.Advance(1000 * ms)
	h.runtime()
	h.Advance(4000*ms - ms)
	h.same(h.counts().DeadLetter, int64(3))
	h.Advance(ms)
	h.wantNumbers(h.peek(deadOrders), 1)
	h.Advance(1000 * ms)
	h.wantNumbers(h.peek(deadOrders))
	h.Advance(lock - 6000*ms)
	h.wantNumbers(h.peek(deadOrders), 4)
	h.Advance(5000 * ms)
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1}) // the main queue is not meant
}

func testTTL_19_EveryLookClearsAway(_ *testing.T, h *fixture) {
	for name, look := range h.looks() {
		h.create(keepsDeadFor(5000*ms), megabytes(1))
		h.send(sized(mebibyte))
		h.deadLetter(h.receiveOne(orders))
		h.Advance(5000 * ms)
		look()
		if _, err := h.broker.Send(h.t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("a")}); err != nil {
			h.t.Errorf("%s does not clear a dead letter away: %v", name, err)
		}
		h.drop()
	}
}

func testTTL_19_LockedIsKeptUntilItsLockEnds(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(5000 * ms))
	h.deadLetterTexts("a", "b", "c", "d", "e")
	got := h.receive(deadOrders, 5)
	h.Advance(6000 * ms)
	h.same(h.counts().DeadLetter, int64(5))
	h.same(h.renew(deadOrders, got[0]), semantics.Renewal{LockedUntil: h.in(lock)})
	h.complete(deadOrders, got[1])
	h.abandon(deadOrders, got[2])
	h.release(deadOrders, got[3])
	h.wantNumbers(h.peek(deadOrders), 1, 5) // given up, so it is gone
	h.Advance(lock - 6000*ms)
	h.wantNumbers(h.peek(deadOrders), 1)
	h.Advance(6000 * ms)
	h.same(h.runtime(), semantics.Runtime{})
}

func testTTL_19_OfTheTimeOfDeadLettering(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("never")
	h.update(keepsDeadFor(5000*ms), "deadLetterTtl")
	h.deadLetterTexts("5 s")
	h.update(keepsDeadFor(1000*ms), "deadLetterTtl")
	h.deadLetterTexts("1 s")
	h.update(keepsDeadFor(semantics.Never), "deadLetterTtl")
	h.Advance(1000 * ms)
	h.wantNumbers(h.peek(deadOrders), 1, 2)
	h.Advance(4000 * ms)
	h.wantNumbers(h.peek(deadOrders), 1)
	h.Advance(1000 * time.Hour)
	h.wantNumbers(h.peek(deadOrders), 1)
}

func testTTL_19_WhateverItsState(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(5000 * ms))
	h.deadLetterTexts("deferred", "delayed", "deferred and locked")
	got := h.receive(deadOrders, 3)
	h.setAside(deadOrders, got[0], got[2])
	h.abandonFor(time.Hour, deadOrders, got[1])
	h.Advance(5000*ms - ms)
	h.takeDeferred(deadOrders, 3)
	h.Advance(ms)
	h.wantMissing(h.receiveDeferred(deadOrders, 1), "1")
	h.wantNumbers(h.peek(deadOrders), 3)
	h.Advance(lock)
	h.same(h.runtime(), semantics.Runtime{})
}

func testTTL_19_ManyAtOnce(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(5000 * ms))
	const many = 700 // more than a store may want to clear in one step
	h.sendTexts(many)
	h.deadLetter(h.receive(orders, many)...)
	h.Advance(5000*ms - ms)
	h.same(h.counts().DeadLetter, int64(many))
	h.Advance(ms)
	h.receiveNone(deadOrders)
	h.wantNumbers(h.peek(deadOrders))
}

func testDLQ_16_KeepsItsCountAndTimes(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(1000*ms)))
	h.Advance(1000 * ms)
	h.setAside(orders, h.receiveOne(orders))
	h.abandon(orders, h.takeDeferred(orders, 2)...)
	h.Advance(ms)
	h.deadLetter(h.takeDeferred(orders, 2)...)
	dead := h.row(deadOrders, 2)
	h.same([]time.Time{dead.EnqueuedAt, dead.ScheduledAt, dead.DeadLetteredAt}, []time.Time{h.in(-ms), h.in(-ms), h.Now()})
	h.same([]any{dead.DeliveryCount, dead.State, dead.VisibleAt}, []any{1, semantics.Active, time.Time{}})
	h.Advance(ms)
	h.abandon(deadOrders, h.receiveOne(deadOrders))
	h.same(h.row(deadOrders, 2).DeadLetteredAt, h.in(-ms))
}

func testDC_7_CountOfItsOwn(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.sendTexts(1)
	h.abandon(orders, h.receiveOne(orders))
	h.same(h.row(orders, 1).DeadLetterDeliveryCount, 0)
	h.abandon(orders, h.receiveOne(orders))
	counts := func(m *semantics.Received) []int { return []int{m.DeliveryCount, m.DeadLetterDeliveryCount} }
	for failed := range 5 {
		h.same(counts(h.row(deadOrders, 1)), []int{2, failed})
		got := h.receiveOne(deadOrders)
		h.same(counts(got), []int{3, failed})
		switch failed % 3 {
		case 0:
			h.abandon(deadOrders, got)
		case 1:
			h.Advance(lock)
		case 2:
			h.release(deadOrders, got) // which counts nothing
			h.setAside(deadOrders, h.receiveOne(deadOrders))
			h.abandon(deadOrders, h.takeDeferred(deadOrders, 1)...)
			h.ok(h.reactivate(deadOrders, 1))
		}
	}
	h.resubmit(broker.ResubmitOptions{})
	h.same(counts(h.row(orders, 2)), []int{0, 0})
}
