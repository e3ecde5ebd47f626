package storetest

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

var deliveryCountTests = []ruleTest{
	testDC_1_AbandonAndLockEndCountOne,
	testDC_2_TheRestCountsNothing,
	testDC_5_ExactlyMaxDeliveries,
	testDC_5_OneDelivery,
	testDC_5_LockEndReachesTheMax,
	testDC_6_LoweringActsAtTheNextFailure,
	testDC_6_RaisingHelpsAtOnce,
	testDC_7_FrozenInTheDeadLetterQueue,
	testDC_9_DeadLetterKeepsTheLastValue,
}

func testDC_1_AbandonAndLockEndCountOne(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.abandon(orders, h.receiveOne(orders))
	h.same(h.peek(orders)[0].DeliveryCount, 1)
	h.receiveOne(orders)
	h.Advance(10 * lock) // one lock ended, however long ago
	h.same(h.peek(orders)[0].DeliveryCount, 2)
	h.same(h.receiveOne(orders).DeliveryCount, 3)
}

func testDC_2_TheRestCountsNothing(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.renew(orders, got)
	h.peek(orders)
	h.release(orders, got)
	h.ok(h.receiveAs(orders, 1, semantics.PeekLock).Undelivered(t.Context()))
	h.setAside(orders, h.receiveOne(orders))
	h.ok(h.reactivate(orders, 1))
	got = h.receiveOne(orders)
	h.same(got.DeliveryCount, 1)
	h.deadLetter(got)
	h.same(h.peek(deadOrders)[0].DeliveryCount, 0)
}

func testDC_5_ExactlyMaxDeliveries(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(3))
	h.sendTexts(1)
	for i := range 3 {
		h.wantCounts(1, 0, 0)
		got := h.receiveOne(orders)
		h.same(got.DeliveryCount, i+1)
		h.abandon(orders, got)
	}
	h.receiveNone(orders)
	h.wantCounts(0, 0, 1)
	h.same(h.peek(deadOrders)[0].DeliveryCount, 3)
}

func testDC_5_OneDelivery(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1))
	h.sendTexts(2)
	h.abandon(orders, h.receiveOne(orders))
	h.wantCounts(1, 0, 1)
	h.complete(orders, h.receiveOne(orders)) // a delivery that succeeds is not a failure
	h.wantCounts(0, 0, 1)
}

func testDC_5_LockEndReachesTheMax(_ *testing.T, h *fixture) {
	looks := []func(){ // each of them alone carries it out
		func() { h.receiveNone(orders) },
		func() { h.wantNumbers(h.peek(orders)) },
		func() { h.runtime() },
	}
	for _, look := range looks {
		h.create(deliversAtMost(2))
		h.sendTexts(1)
		h.abandon(orders, h.receiveOne(orders))
		h.receiveOne(orders)
		h.Advance(lock - ms)
		h.wantCounts(0, 1, 0)
		h.Advance(ms)
		look()
		dead := h.peek(deadOrders)
		h.wantNumbers(dead, 1)
		h.same(dead[0].DeadLetterReason, "MaxDeliveryCountExceeded")
		h.same(dead[0].DeliveryCount, 2)
		h.wantCounts(0, 0, 1)
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testDC_6_LoweringActsAtTheNextFailure(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(10))
	h.sendTexts(3)
	for range 3 {
		h.abandon(orders, h.receive(orders, 3)...)
	}
	h.update(deliversAtMost(2), "maxDeliveryCount")
	h.wantCounts(3, 0, 0) // not by the change itself
	got := h.receive(orders, 3)
	h.same(got[0].DeliveryCount, 4)
	h.abandon(orders, got[0])
	h.wantCounts(0, 2, 1)
	h.release(orders, got[1]) // no failure
	h.wantCounts(1, 1, 1)
	h.Advance(lock)
	h.wantCounts(1, 0, 2)
	h.complete(orders, h.receiveOne(orders))
	h.wantCounts(0, 0, 2)
}

func testDC_6_RaisingHelpsAtOnce(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1))
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.update(deliversAtMost(2), "maxDeliveryCount")
	h.abandon(orders, got)
	h.wantCounts(1, 0, 0)
}

func testDC_7_FrozenInTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.sendTexts(1)
	h.abandon(orders, h.receiveOne(orders))
	h.abandon(orders, h.receiveOne(orders))
	for range 5 {
		h.same(h.peek(deadOrders)[0].DeliveryCount, 2)
		got := h.receiveOne(deadOrders)
		h.same(got.DeliveryCount, 3) // MSG-10 holds here as well
		h.abandon(deadOrders, got)
		h.wantCounts(0, 0, 1)
		h.release(deadOrders, h.receiveOne(deadOrders))
		h.receiveOne(deadOrders)
		h.Advance(lock)
		h.wantCounts(0, 0, 1)
	}
	h.complete(deadOrders, h.receiveOne(deadOrders))
	h.wantCounts(0, 0, 0)
}

func testDC_9_DeadLetterKeepsTheLastValue(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("expires", 1000*ms), text("poison"))
	for range 4 {
		h.abandon(orders, h.receive(orders, 2)...)
	}
	h.deadLetter(h.receive(orders, 2)[1])
	h.Advance(lock)
	h.receiveNone(orders)
	dead := h.peek(deadOrders)
	h.wantNumbers(dead, 1, 2)
	// the end of its lock counted for the first
	h.same([]int{dead[0].DeliveryCount, dead[1].DeliveryCount}, []int{5, 4})
}
