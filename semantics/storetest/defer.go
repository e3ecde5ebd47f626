package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

var deferTests = []ruleTest{
	testSETTLE_9_Defer,
	testDEFER_1_OnlyByNumber,
	testDEFER_2_FoundAgainByPeek,
	testDEFER_3_AnyReceiverThatKnowsTheNumber,
	testDEFER_3_ReceiveAndDelete,
	testDEFER_3_InTheOrderAskedFor,
	testDEFER_4_AllOrNone,
	testDEFER_4_Bounds,
	testDEFER_4_RaceHasOneWinner,
	testDEFER_5_EveryVerbAfterFetch,
	testDEFER_5_GivenBackIsDeferredAgain,
	testDEFER_5_MaxDeliveryCount,
	testDEFER_6_CountsAsActive,
	testDEFER_8_BackToItsOldPlace,
	testDEFER_8_AllOrNone,
	testDEFER_8_ReactivatedIsLikeAnyOther,
	testDLQ_3_DeferInTheDeadLetterQueue,
	testMSG_9_States,
	testDC_9_CountSurvivesDeferral,
}

// deferred makes orders with n texts, all deferred.
func (h *fixture) deferred(n int, changes ...change) {
	h.t.Helper()
	h.create(changes...)
	h.sendTexts(n)
	h.setAside(orders, h.receive(orders, n)...)
}

func testSETTLE_9_Defer(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.abandon(orders, h.receiveOne(orders))
	before := h.row(orders, 1)
	got := h.receiveOne(orders)
	h.Advance(ms)
	h.setAside(orders, got)
	before.State = semantics.Deferred
	h.same(h.row(orders, 1), before) // unlocked, the count unchanged, and nothing else either
	h.lost(orders, got)
	h.Advance(2 * lock)
	h.same(h.row(orders, 1), before)
}

func testDEFER_1_OnlyByNumber(_ *testing.T, h *fixture) {
	h.deferred(2)
	h.receiveNone(orders)
	h.receiveNone(deadOrders)
	h.Advance(1000 * time.Hour) // it has no time limit (DEFER-6)
	h.receiveNone(orders)
	h.sendTexts(1)
	h.wantNumbers(h.receive(orders, 9), 3)
	h.complete(orders, h.takeDeferred(orders, 2)...)
	h.takeDeferred(orders, 1)
}

func testDEFER_2_FoundAgainByPeek(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	got := h.receive(orders, 4)
	h.setAside(orders, got[3], got[1])
	h.release(orders, got[0])
	h.same(h.showing(orders, semantics.ShowDeferred), []int64{2, 4})
	h.same(h.showing(orders, semantics.ShowAll), []int64{1, 2, 3, 4})
	h.takeDeferred(orders, h.showing(orders, semantics.ShowDeferred)...)
	h.same(h.showing(orders, semantics.ShowDeferred), []int64(nil))
	h.same(h.showing(orders, semantics.ShowLocked), []int64{2, 3, 4})
}

func testDEFER_3_AnyReceiverThatKnowsTheNumber(t *testing.T, h *fixture) {
	h.deferred(1, locksFor(7000*ms))
	brokers := h.sidecars()
	other := brokers[len(brokers)-1]
	h.Advance(ms)
	delivery, err := other.ReceiveDeferred(t.Context(), orders, []int64{1}, semantics.PeekLock)
	h.ok(err)
	got := delivery.Messages[0]
	h.same(got.LockedUntil, h.in(7000*ms)) // locked as normal
	h.same([]int{got.DeliveryCount, h.row(orders, 1).DeliveryCount}, []int{1, 0})
	h.same(h.renew(orders, got), semantics.Renewal{LockedUntil: h.in(7000 * ms)})
	h.complete(orders, got)
	h.same(h.runtime(), semantics.Runtime{})
}

func testDEFER_3_ReceiveAndDelete(t *testing.T, h *fixture) {
	h.deferred(2)
	take := func(number int64) *delivery.Delivery {
		delivery, err := h.broker.ReceiveDeferred(t.Context(), orders, []int64{number}, semantics.ReceiveAndDelete)
		h.ok(err)
		h.wantNumbers(delivery.Messages, number)
		return delivery
	}
	taken := take(2)
	h.same(taken.Messages[0].LockToken.IsZero(), true)
	h.ok(taken.Delivered(t.Context()))
	h.wantNumbers(h.peek(orders), 1)
	h.ok(take(1).Undelivered(t.Context())) // then it is deferred as before
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1})
	h.same(h.row(orders, 1).DeliveryCount, 0)
}

func testDEFER_3_InTheOrderAskedFor(_ *testing.T, h *fixture) {
	h.deferred(12)
	h.takeDeferred(orders, 11, 2, 12, 10, 9)
	delivery, err := h.broker.ReceiveDeferred(h.t.Context(), orders, []int64{3, 1, 3, 3}, semantics.PeekLock)
	h.ok(err)
	h.wantNumbers(delivery.Messages, 3, 1) // one that is named twice comes once
	h.same(h.counts(), semantics.Runtime{Active: 12, Locked: 7, Deferred: 5})
}

func testDEFER_4_AllOrNone(_ *testing.T, h *fixture) {
	h.deferred(4)
	h.sendTexts(2) // 5 and 6
	h.send(later("scheduled", h.in(time.Hour)))
	h.deadLetter(h.takeDeferred(orders, 4)...)
	h.takeDeferred(orders, 3)
	h.takeNumbers(orders, 6)
	for numbers, list := range map[[3]int64]string{
		{1, 2, 3}:   "3", // locked
		{1, 5, 2}:   "5", // available
		{6, 1, 2}:   "6", // locked
		{1, 7, 2}:   "7", // scheduled
		{1, 4, 2}:   "4", // a dead letter
		{99, 1, 98}: "99,98",
	} {
		h.refused(semantics.MessageNotFound, func() error {
			err := h.receiveDeferred(orders, numbers[:]...)
			h.wantMissing(err, list)
			return err
		})
	}
	h.wantMissing(h.receiveDeferred(deadOrders, 1), "1")
	h.takeDeferred(orders, 1, 2) // none is locked by the failures
}

func testDEFER_4_Bounds(t *testing.T, h *fixture) {
	h.deferred(broker.MaxDeferredNumbers)
	delivery, err := h.broker.ReceiveDeferred(t.Context(), orders, nil, semantics.PeekLock)
	h.ok(err)
	h.wantNumbers(delivery.Messages) // none asked for, none given
	h.ok(h.reactivate(orders))
	all := numbersOf(h.peek(orders))
	for _, numbers := range [][]int64{append(all[:len(all):len(all)], 1), {1, 0}, {-1}} {
		h.refused(semantics.ArgumentOutOfRange, func() error { return h.receiveDeferred(orders, numbers...) })
		h.refused(semantics.ArgumentOutOfRange, func() error { return h.receiveNumbers(orders, numbers...) })
		h.refused(semantics.ArgumentOutOfRange, func() error { return h.reactivate(orders, numbers...) })
	}
	h.refused(semantics.InvalidArgument, func() error {
		_, err := h.broker.ReceiveDeferred(t.Context(), orders, []int64{1}, 2)
		return err
	})
	h.takeDeferred(orders, all...)
}

func testDEFER_4_RaceHasOneWinner(t *testing.T, h *fixture) {
	h.races()
	h.deferred(2, deliversAtMost(1000))
	brokers := h.sidecars()
	for range 10 {
		var wins atomic.Int32
		var work sync.WaitGroup
		for i := range 6 {
			work.Go(func() {
				delivery, err := brokers[i%len(brokers)].ReceiveDeferred(t.Context(), orders, []int64{1, 2}, semantics.PeekLock)
				switch semantics.CodeOf(err) {
				case "":
					wins.Add(1)
					codes, err := h.broker.Defer(t.Context(), orders, tokensOf(delivery.Messages[1]), nil)
					if err != nil || codes[0] != "" {
						t.Error(codes, err)
					}
				case semantics.MessageNotFound:
				default:
					t.Error(err)
				}
			})
		}
		work.Wait()
		h.same(wins.Load(), int32(1))
		h.same(h.counts(), semantics.Runtime{Active: 2, Locked: 1, Deferred: 1})
		h.Advance(lock)
	}
}

func testDEFER_5_EveryVerbAfterFetch(_ *testing.T, h *fixture) {
	h.deferred(4)
	got := h.takeDeferred(orders, 1, 2, 3, 4)
	h.complete(orders, got[0])
	h.deadLetter(got[1])
	h.setAside(orders, got[2])
	h.abandon(orders, got[3])
	h.same(h.counts(), semantics.Runtime{Active: 2, Deferred: 2, DeadLetter: 1})
	h.receiveNone(orders)
	h.same(h.receiveOne(deadOrders).State, semantics.Active) // deferral ends with the move
	rows := h.takeDeferred(orders, 3, 4)
	h.same([]int{rows[0].DeliveryCount, rows[1].DeliveryCount}, []int{1, 2})
}

func testDEFER_5_GivenBackIsDeferredAgain(_ *testing.T, h *fixture) {
	h.deferred(4, delaysFor(time.Second)) // a deferred message is not delayed
	got := h.takeDeferred(orders, 1, 2, 3, 4)
	h.abandon(orders, got[0])
	h.release(orders, got[1])
	h.abandonFor(time.Hour, orders, got[2])
	h.Advance(lock - ms)
	h.same(h.counts(), semantics.Runtime{Active: 4, Locked: 1, Deferred: 3})
	h.Advance(ms)
	h.receiveNone(orders)
	h.same(h.counts(), semantics.Runtime{Active: 4, Deferred: 4})
	for i, m := range h.takeDeferred(orders, 1, 2, 3, 4) {
		h.same(m.DeliveryCount, []int{2, 1, 2, 2}[i])
		h.same(m.State, semantics.Deferred)
	}
}

func testDEFER_5_MaxDeliveryCount(_ *testing.T, h *fixture) {
	h.deferred(2, deliversAtMost(2))
	h.abandon(orders, h.takeDeferred(orders, 1)...)
	h.takeDeferred(orders, 2)
	h.Advance(lock)
	got := h.takeDeferred(orders, 1, 2)
	h.abandon(orders, got[0])
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1, DeadLetter: 1})
	h.Advance(lock)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 2})
	for _, dead := range h.receive(deadOrders, 2) {
		h.same(dead.DeadLetterReason, "MaxDeliveryCountExceeded")
		h.same(dead.State, semantics.Active)
	}
	h.wantMissing(h.receiveDeferred(orders, 1, 2), "1,2")
}

func testDEFER_6_CountsAsActive(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(2))
	first := h.Now()
	h.sendTexts(1)
	h.Advance(ms)
	h.sendTexts(1)
	h.setAside(orders, h.receiveOne(orders))
	r := h.runtime()
	h.same(r, semantics.Runtime{Active: 2, Available: 1, Deferred: 1, SizeInBytes: 8, OldestEnqueuedAt: first, AvailableSince: first.Add(ms)})
	h.refusedSend(semantics.EntityFull, text("c"))
	h.takeDeferred(orders, 1)
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 1, Locked: 1})
	h.refusedSend(semantics.EntityFull, text("c"))
}

func testDEFER_8_BackToItsOldPlace(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(12)
	got := h.receive(orders, 11)
	h.setAside(orders, got[9], got[1], got[8])
	h.release(orders, got[10])
	h.ok(h.reactivate(orders, 10, 2, 10))
	h.same(h.counts(), semantics.Runtime{Active: 12, Available: 4, Locked: 7, Deferred: 1})
	rows := h.receive(orders, 9)
	h.wantNumbers(rows, 2, 10, 11, 12)
	h.same([]semantics.State{rows[0].State, h.row(orders, 9).State}, []semantics.State{semantics.Active, semantics.Deferred})
}

func testDEFER_8_AllOrNone(_ *testing.T, h *fixture) {
	h.deferred(4)
	h.takeDeferred(orders, 2)
	h.sendTexts(1)
	err := h.refused(semantics.MessageNotFound, func() error { return h.reactivate(orders, 1, 2, 5, 3, 99) })
	h.same(err.Details[semantics.DetailNumbers], "2,5,99")
	h.ok(h.reactivate(orders, 3, 1))
	h.wantMissing(h.reactivate(orders, 1), "1") // it no longer is deferred
	h.wantNumbers(h.receive(orders, 9), 1, 3, 5)
}

func testDEFER_8_ReactivatedIsLikeAnyOther(t *testing.T, h *fixture) {
	h.deferred(2)
	done := h.newSidecar(h.Store).waiting(t.Context(), orders, 9)
	h.ok(h.reactivate(orders, 1))
	got := h.awaitNumbers(done, 1).Messages // it wakes who waits
	h.same([]any{got[0].DeliveryCount, got[0].State}, []any{1, semantics.Active})
	h.abandon(orders, got...)
	h.same(h.receiveOne(orders).DeliveryCount, 2) // and goes back among the available
	h.wantMissing(h.receiveDeferred(orders, 1), "1")
}

func testDLQ_3_DeferInTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.create(livesFor(1000*ms), deliversAtMost(1))
	h.deadLetterTexts("a", "b", "c")
	got := h.receive(deadOrders, 3)
	h.setAside(deadOrders, got...)
	h.Advance(time.Hour) // no lifetime counts there
	h.receiveNone(deadOrders)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 3})
	h.same(h.showing(deadOrders, semantics.ShowDeferred), []int64{1, 2, 3})
	h.wantMissing(h.receiveDeferred(orders, 1), "1")
	taken := h.takeDeferred(deadOrders, 2, 1)
	h.same(taken[0].State, semantics.Deferred)
	h.abandon(deadOrders, taken[0])
	h.complete(deadOrders, taken[1])
	h.same(h.showing(deadOrders, semantics.ShowDeferred), []int64{2, 3})
	h.ok(h.reactivate(deadOrders, 3, 2))
	h.wantNumbers(h.receive(deadOrders, 9), 2, 3)
}

func testMSG_9_States(_ *testing.T, h *fixture) {
	h.deferred(1)
	h.send(later("b", h.in(time.Hour)), text("c"))
	states := func() (all []semantics.State) {
		for _, m := range h.peek(orders) {
			all = append(all, m.State)
		}
		return all
	}
	want := []semantics.State{semantics.Deferred, semantics.Scheduled, semantics.Active}
	h.same(states(), want)
	got := append(h.takeDeferred(orders, 1), h.receiveOne(orders))
	h.same([]semantics.State{got[0].State, got[1].State}, []semantics.State{semantics.Deferred, semantics.Active})
	h.same(states(), want) // also while they are locked
}

func testDC_9_CountSurvivesDeferral(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.abandon(orders, h.receiveOne(orders))
	h.abandonFor(time.Second, orders, h.receiveOne(orders))
	h.same(h.row(orders, 1).DeliveryCount, 2) // and a delay
	h.Advance(time.Second)
	h.setAside(orders, h.receiveOne(orders))
	h.same(h.row(orders, 1).DeliveryCount, 2) // DC-2: deferring counts nothing
	h.ok(h.reactivate(orders, 1))
	h.deadLetter(h.receiveOne(orders))
	h.same(h.row(deadOrders, 1).DeliveryCount, 2)
}
