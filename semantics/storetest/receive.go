package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

var receiveTests = []ruleTest{
	testRECV_1_ModeIsPerCall,
	testRECV_2_LockHidesUntilItEnds,
	testRECV_3_ReceiveAndDeleteRemoves,
	testRECV_4_NothingElseRemoves,
	testRECV_5_WithoutWaitGivesWhatIsThere,
	testRECV_6_Bounds,
	testRECV_7_UndeliveredIsGivenBackUncounted,
	testRECV_7_ReceiveAndDeleteRemovesWhenDelivered,
	testRECV_8_OrderOfNumbers,
	testRECV_9_BackToItsPlace,
}

// receiveAs makes a receive without wait and returns the Delivery itself.
func (h *fixture) receiveAs(source semantics.Source, n int, mode semantics.Mode) *delivery.Delivery {
	h.t.Helper()
	delivery, err := h.broker.Receive(h.t.Context(), source, broker.ReceiveOptions{MaxMessages: n, Mode: mode})
	h.ok(err)
	return delivery
}

func testRECV_1_ModeIsPerCall(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.ok(h.receiveAs(orders, 1, semantics.PeekLock).Delivered(t.Context()))
	h.ok(h.receiveAs(orders, 1, semantics.ReceiveAndDelete).Delivered(t.Context()))
	h.wantCounts(0, 1, 0)
	h.wantNumbers(h.peek(orders), 1)
}

func testRECV_2_LockHidesUntilItEnds(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.receiveOne(orders)
	h.receiveNone(orders)
	h.Advance(lock - ms)
	h.receiveNone(orders)
	h.Advance(ms)
	h.complete(orders, h.receiveOne(orders))
	h.Advance(2 * lock)
	h.receiveNone(orders)
	h.wantCounts(0, 0, 0)
}

func testRECV_3_ReceiveAndDeleteRemoves(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	taken := h.receiveAs(orders, 2, semantics.ReceiveAndDelete)
	h.wantNumbers(taken.Messages, 1, 2)
	h.same(taken.Messages[0].DeliveryCount, 1)
	h.ok(taken.Delivered(t.Context()))
	h.wantNumbers(h.peek(orders), 3)
	h.wantCounts(1, 0, 0)

	h.deadLetter(h.receiveOne(orders))
	taken = h.receiveAs(deadOrders, 2, semantics.ReceiveAndDelete)
	h.wantNumbers(taken.Messages, 3)
	h.ok(taken.Delivered(t.Context()))
	h.wantCounts(0, 0, 0)
	h.same(h.runtime().SizeInBytes, int64(0))
}

func testRECV_4_NothingElseRemoves(t *testing.T, h *fixture) {
	h.create(deliversAtMost(1000))
	h.sendTexts(5)
	for range 5 {
		got := h.receive(orders, 5)
		h.wantNumbers(got, 1, 2, 3, 4, 5)
		h.abandon(orders, got[0])
		h.release(orders, got[1])
		h.renew(orders, got[2])
		h.peek(orders)
		h.update(deliversAtMost(999), "maxDeliveryCount")
		h.ok(h.receiveAs(orders, 1, semantics.ReceiveAndDelete).Undelivered(t.Context()))
		h.Advance(lock)
		h.wantCounts(5, 0, 0)
	}
}

func testRECV_5_WithoutWaitGivesWhatIsThere(_ *testing.T, h *fixture) {
	h.create()
	h.receiveNone(orders)
	h.receiveNone(deadOrders)
	h.sendTexts(3)
	h.wantNumbers(h.receive(orders, 2), 1, 2)
	h.wantNumbers(h.receive(orders, 1000), 3)
	h.receiveNone(orders)
}

func testRECV_6_Bounds(t *testing.T, h *fixture) {
	h.create()
	var batch []*semantics.Message
	for range 1001 {
		batch = append(batch, &semantics.Message{MessageID: "i"})
	}
	h.send(batch...)
	for _, o := range []broker.ReceiveOptions{
		{MaxMessages: 0},
		{MaxMessages: -1},
		{MaxMessages: 1001},
		{MaxMessages: 1, MaxWait: -ms},
		{MaxMessages: 1, MaxWait: 5*time.Minute + ms},
	} {
		h.refused(semantics.ArgumentOutOfRange, func() error {
			_, err := h.broker.Receive(t.Context(), orders, o)
			return err
		})
	}
	h.refused(semantics.InvalidArgument, func() error {
		_, err := h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1, Mode: 2})
		return err
	})
	delivery, err := h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1000, MaxWait: 5 * time.Minute})
	h.ok(err)
	h.same(len(delivery.Messages), 1000)
	h.wantCounts(1, 1000, 0)
	codes, err := h.broker.Complete(t.Context(), orders, tokensOf(delivery.Messages...))
	h.settled(codes, err)
	h.wantNumbers(h.receive(orders, 1), 1001)
}

func testRECV_7_UndeliveredIsGivenBackUncounted(t *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.sendTexts(2)
	for range 5 { // more often than deliveries are permitted
		for _, mode := range []semantics.Mode{semantics.PeekLock, semantics.ReceiveAndDelete} {
			delivery := h.receiveAs(orders, 2, mode)
			h.wantNumbers(delivery.Messages, 1, 2)
			h.same(delivery.Messages[0].DeliveryCount, 1)
			h.ok(delivery.Undelivered(t.Context()))
			h.wantCounts(2, 0, 0)
		}
	}
	h.same(h.peek(orders)[0].DeliveryCount, 0)
	h.same(h.broker.Held(), 0)
}

func testRECV_7_ReceiveAndDeleteRemovesWhenDelivered(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	delivery := h.receiveAs(orders, 1, semantics.ReceiveAndDelete)
	h.receiveNone(orders)
	h.wantNumbers(h.peek(orders), 1) // until the answer was written it can come back
	h.ok(delivery.Delivered(t.Context()))
	h.wantNumbers(h.peek(orders))
	h.Advance(2 * lock)
	h.receiveNone(orders)

	// A sidecar that crashes in between loses nothing.
	h.sendTexts(1)
	h.receiveAs(orders, 1, semantics.ReceiveAndDelete)
	h.Advance(lock)
	h.same(h.receiveOne(orders).DeliveryCount, 2)
}

func testRECV_8_OrderOfNumbers(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	h.Advance(ms)
	h.sendTexts(3)
	h.wantNumbers(h.receive(orders, 2), 1, 2)
	h.wantNumbers(h.receive(orders, 1), 3)
	h.wantNumbers(h.receive(orders, 10), 4, 5, 6, 7)
}

func testRECV_9_BackToItsPlace(_ *testing.T, h *fixture) {
	h.create(locksFor(10 * time.Second))
	h.sendTexts(14) // numbers of one and of two digits
	got := h.receive(orders, 12)
	h.abandon(orders, got[10], got[1])
	h.release(orders, got[8])
	h.wantNumbers(h.receive(orders, 4), 2, 9, 11, 13)
	h.Advance(10 * time.Second) // all come back, each to its place
	h.wantNumbers(h.receive(orders, 20), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
}
