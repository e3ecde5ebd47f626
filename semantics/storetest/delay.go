package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var delayTests = []ruleTest{
	testSETTLE_11_InvisibleUntilItsTime,
	testSETTLE_11_BackToItsPlace,
	testSETTLE_11_Bounds,
	testSETTLE_11_CountsAndMarks,
	testSETTLE_11_ExpiresAtStillHolds,
	testSETTLE_11_WaitSeesTheEndOfADelay,
	testSETTLE_11_EndOfADelayWakes,
	testSETTLE_11_ReceivedByNumberMeanwhile,
	testSETTLE_11_InTheDeadLetterQueue,
	testSETTLE_11_RedeliveryDelay,
	testSETTLE_11_RedeliveryDelayAfterALock,
	testSETTLE_11_OnlyFailuresAreDelayed,
	testSETTLE_12_LastAbandonWithDelayDeadLetters,
}

func testSETTLE_11_InvisibleUntilItsTime(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.Advance(ms)
	h.abandonFor(1000*ms, orders, got)
	h.lost(orders, got)
	h.same(h.row(orders, 1).DeliveryCount, 1)
	h.receiveNone(orders)
	h.Advance(1000*ms - ms)
	h.receiveNone(orders)
	h.Advance(ms)
	h.same(h.receiveOne(orders).DeliveryCount, 2)
}

func testSETTLE_11_BackToItsPlace(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(12)
	got := h.receive(orders, 11)
	h.abandonFor(2000*ms, orders, got[9], got[1])
	h.abandonFor(1000*ms, orders, got[8])
	h.Advance(2000 * ms)
	h.wantNumbers(h.receive(orders, 9), 2, 9, 10, 12)
}

func testSETTLE_11_Bounds(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	const most = 7 * 24 * time.Hour
	for _, d := range []time.Duration{-ms, most + ms} {
		h.refused(semantics.ArgumentOutOfRange, func() error {
			_, err := h.broker.Abandon(t.Context(), orders, tokensOf(got[0]), semantics.AbandonOptions{Delay: &d})
			return err
		})
	}
	h.abandonFor(0, orders, got[0])
	h.wantNumbers(h.receive(orders, 9), 1)
	h.abandonFor(most, orders, got[1])
	h.Advance(most - ms)
	h.wantNumbers(h.receive(orders, 9), 1) // whose lock ended meanwhile
	h.Advance(ms)
	h.wantNumbers(h.receive(orders, 9), 2)
}

func testSETTLE_11_CountsAndMarks(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(2))
	h.sendTexts(2)
	h.abandonFor(1000*ms, orders, h.receiveOne(orders))
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2, Delayed: 1})
	h.refusedSend(semantics.EntityFull, text("c"))
	row := h.row(orders, 1)
	h.same([]any{row.State, row.Locked, row.VisibleAt}, []any{semantics.Active, false, h.in(1000 * ms)})
	h.same(h.row(orders, 2).VisibleAt, time.Time{})
	h.same(h.showing(orders, semantics.ShowAvailable), []int64{1, 2})
	h.Advance(1000 * ms)
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2})
	h.same(h.row(orders, 1).VisibleAt, time.Time{})
	h.receiveOne(orders)
	h.same(h.row(orders, 1).VisibleAt, time.Time{})
}

func testSETTLE_11_ExpiresAtStillHolds(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms), lasting("b", 1000*ms))
	got := h.receive(orders, 2)
	h.abandonFor(1000*ms, orders, got[0])
	h.abandonFor(999*ms, orders, got[1])
	h.Advance(1000*ms - ms)
	h.wantNumbers(h.receive(orders, 9), 2)
	h.Advance(ms)
	h.receiveNone(orders)
	dead := h.receiveOne(deadOrders)
	h.same([]any{dead.SequenceNumber, dead.DeadLetterReason}, []any{int64(1), "TTLExpiredException"})
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1, DeadLetter: 1})
}

func testSETTLE_11_WaitSeesTheEndOfADelay(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.abandonFor(30*ms, orders, h.receiveOne(orders))
	done := h.newSidecar(h.Store).waiting(t.Context(), orders, 1)
	h.Advance(30 * ms)
	h.awaitNumbers(done, 1)
}

func testSETTLE_11_EndOfADelayWakes(_ *testing.T, h *fixture) {
	for _, source := range []semantics.Source{orders, deadOrders} {
		h.create()
		h.sendTexts(1)
		if source == deadOrders {
			h.deadLetter(h.receiveOne(orders))
		}
		got := h.receiveOne(source)
		w := h.watch(source)
		h.abandonFor(100*ms, source, got)
		h.Advance(100 * ms)
		h.runtime() // wakes the waiting receive
		for h.awaitWake(w); len(h.receive(source, 1)) == 0; h.awaitWake(w) {
			h.registerEmpty(source) // a wake-up means "look again", no more
		}
		h.drop()
	}
}

func testSETTLE_11_ReceivedByNumberMeanwhile(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.abandonFor(time.Hour, orders, h.receiveOne(orders))
	got := h.takeNumbers(orders, 1)[0]
	h.same(got.DeliveryCount, 2)
	h.same(h.row(orders, 1).VisibleAt, time.Time{})
	h.release(orders, got) // the delay is over
	h.wantNumbers(h.receive(orders, 1), 1)
}

func testSETTLE_11_InTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.create(delaysFor(time.Hour)) // which is none of the dead letters' (SETTLE-11)
	h.deadLetterTexts("a", "b")
	got := h.receive(deadOrders, 2)
	h.abandon(deadOrders, got[1])
	h.abandonFor(1000*ms, deadOrders, got[0])
	h.wantNumbers(h.receive(deadOrders, 9), 2)
	h.same(h.row(deadOrders, 1).VisibleAt, h.in(1000*ms))
	h.Advance(1000*ms - ms)
	h.receiveNone(deadOrders)
	h.Advance(ms)
	h.wantNumbers(h.receive(deadOrders, 9), 1)
	h.Advance(lock)
	h.wantNumbers(h.receive(deadOrders, 9), 1, 2)
}

func testSETTLE_11_RedeliveryDelay(_ *testing.T, h *fixture) {
	h.create(delaysFor(1000 * ms))
	h.sendTexts(3)
	got := h.receive(orders, 3)
	h.abandon(orders, got[0])
	h.abandonFor(0, orders, got[1]) // what is said wins
	h.abandonFor(2000*ms, orders, got[2])
	h.wantNumbers(h.receive(orders, 9), 2)
	h.same(h.row(orders, 1).VisibleAt, h.in(1000*ms))
	h.Advance(1000*ms - ms)
	h.receiveNone(orders)
	h.Advance(ms)
	h.wantNumbers(h.receive(orders, 9), 1)
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(orders, 9), 3)
}

func testSETTLE_11_RedeliveryDelayAfterALock(_ *testing.T, h *fixture) {
	h.create(delaysFor(1000*ms), locksFor(5000*ms))
	h.sendTexts(2)
	h.receiveOne(orders)
	h.Advance(5000 * ms)
	h.same(h.row(orders, 1).VisibleAt, h.in(1000*ms))
	h.same(h.row(orders, 1).DeliveryCount, 1)
	h.wantNumbers(h.receive(orders, 9), 2)
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(orders, 9), 1)
	h.Advance(5000 * ms) // the second's lock expired a second ago, without a call since then
	h.wantNumbers(h.receive(orders, 9), 2)
	h.same(h.row(orders, 1).VisibleAt, h.in(1000*ms))
}

func testSETTLE_11_OnlyFailuresAreDelayed(t *testing.T, h *fixture) {
	h.create(delaysFor(time.Hour))
	h.sendTexts(1)
	h.release(orders, h.receiveOne(orders))
	h.ok(h.receiveAs(orders, 1, semantics.PeekLock).Undelivered(t.Context()))
	h.setAside(orders, h.receiveOne(orders))
	h.ok(h.reactivate(orders, 1))
	h.receiveOne(orders)
}

func testSETTLE_12_LastAbandonWithDelayDeadLetters(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.sendTexts(1)
	h.abandonFor(1000*ms, orders, h.receiveOne(orders))
	h.Advance(1000 * ms)
	h.abandonFor(1000*ms, orders, h.receiveOne(orders))
	h.same(h.counts(), semantics.Runtime{DeadLetter: 1})
	dead := h.receiveOne(deadOrders) // at once, and the delay is gone
	h.same(dead.DeadLetterReason, "MaxDeliveryCountExceeded")
}
