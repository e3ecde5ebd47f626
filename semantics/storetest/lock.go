package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var lockTests = []ruleTest{
	testLOCK_1_DeadlineIsSetAtHandOut,
	testLOCK_2_TokenIsNewForEveryDelivery,
	testLOCK_2_UnknownTokenIsLost,
	testLOCK_2_TokenIsValidOnItsSourceOnly,
	testLOCK_3_RenewSetsFullDuration,
	testLOCK_3_RenewAsOftenAsOneLikes,
	testLOCK_3_RenewAfterTheEndIsLost,
	testLOCK_3_RenewTakesThePresentDuration,
	testLOCK_5_RenewResultPerToken,
	testLOCK_5_RenewBounds,
	testLOCK_6_EndedLockGivesBackCounted,
	testLOCK_6_EndedLocksOfManyComeBackTogether,
	testLOCK_6_OldTokenIsDeadAtRedelivery,
	testLOCK_7_SettleBeforeTheEndWins,
	testLOCK_7_SettleAtTheEndLoses,
	testLOCK_8_AnotherBrokerMaySettle,
}

func testLOCK_1_DeadlineIsSetAtHandOut(_ *testing.T, h *fixture) {
	h.create(locksFor(7001 * ms))
	h.sendTexts(2)
	h.Advance(3 * ms)
	h.same(h.receiveOne(orders).LockedUntil, h.Now().Add(7001*ms))
	h.Advance(3 * ms)
	got := h.receiveOne(orders)
	h.same(got.LockedUntil, h.Now().Add(7001*ms))
	h.deadLetter(got)
	h.Advance(3 * ms)
	h.same(h.receiveOne(deadOrders).LockedUntil, h.Now().Add(7001*ms))
}

func testLOCK_2_TokenIsNewForEveryDelivery(t *testing.T, h *fixture) {
	h.create(deliversAtMost(100))
	h.sendTexts(3)
	seen := map[semantics.LockToken]bool{}
	for range 5 {
		got := h.receive(orders, 3)
		for _, m := range got {
			if m.LockToken.IsZero() || seen[m.LockToken] {
				t.Fatalf("token %s is not new", m.LockToken)
			}
			seen[m.LockToken] = true
		}
		h.abandon(orders, got...)
	}
}

func testLOCK_2_UnknownTokenIsLost(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.receiveOne(orders)
	h.lost(orders, &semantics.Received{LockToken: semantics.NewLockToken()})
	h.lost(deadOrders, &semantics.Received{LockToken: semantics.NewLockToken()})
	h.lost(orders, &semantics.Received{})
}

func testLOCK_2_TokenIsValidOnItsSourceOnly(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("other")
	h.sendTexts(2)
	dead := h.receiveOne(orders)
	h.deadLetter(dead)
	got, dead := h.receiveOne(orders), h.receiveOne(deadOrders)
	h.lost(semantics.Source{Path: "other"}, got)
	h.lost(deadOrders, got)
	h.lost(orders, dead)
	h.complete(orders, got)
	h.complete(deadOrders, dead)
}

func testLOCK_3_RenewSetsFullDuration(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.Advance(lock / 3)
	renewed := h.renew(orders, got)
	h.same(renewed, semantics.Renewal{LockedUntil: h.Now().Add(lock)}) // not the old end + duration
	h.Advance(lock - ms)
	h.receiveNone(orders)
	h.Advance(ms)
	h.same(h.receiveOne(orders).DeliveryCount, 2)
}

func testLOCK_3_RenewAsOftenAsOneLikes(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	for range 50 {
		h.Advance(lock - ms)
		h.same(h.renew(orders, got).Code, semantics.Code(""))
	}
	h.complete(orders, got)
	h.wantCounts(0, 0, 0)
}

func testLOCK_3_RenewAfterTheEndIsLost(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.Advance(lock)
	h.same(h.renew(orders, got), semantics.Renewal{Code: semantics.MessageLockLost})
	h.wantCounts(1, 0, 0)
	h.same(h.peek(orders)[0].DeliveryCount, 1)
}

func testLOCK_3_RenewTakesThePresentDuration(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	h.update(locksFor(10*time.Second), "lockDuration")
	h.same(h.renew(orders, got).LockedUntil, h.Now().Add(10*time.Second)) // which may be earlier than before
	h.Advance(10 * time.Second)
	h.lost(orders, got)
	h.wantNumbers(h.receive(orders, 1), 1)
}

func testLOCK_5_RenewResultPerToken(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	ended := h.receiveOne(orders)
	h.Advance(lock / 2)
	done, held := h.receiveOne(orders), h.receiveOne(orders)
	h.complete(orders, done)
	h.Advance(lock / 2)
	tokens := append(tokensOf(ended, held, done, held), semantics.NewLockToken())
	got, err := h.broker.RenewLocks(t.Context(), orders, tokens)
	h.ok(err)
	isLost, isHeld := semantics.Renewal{Code: semantics.MessageLockLost}, semantics.Renewal{LockedUntil: h.Now().Add(lock)}
	h.same(got, []semantics.Renewal{isLost, isHeld, isLost, isHeld, isLost})
	h.Advance(lock - ms)
	h.complete(orders, held)
}

func testLOCK_5_RenewBounds(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(500)
	got := h.receive(orders, 500)
	tokens := tokensOf(got...)
	h.Advance(ms)
	renewals, err := h.broker.RenewLocks(t.Context(), orders, tokens)
	h.ok(err)
	for _, r := range renewals {
		h.same(r, semantics.Renewal{LockedUntil: h.Now().Add(lock)})
	}
	h.Advance(ms)
	_, err = h.broker.RenewLocks(t.Context(), orders, append(tokens, semantics.NewLockToken()))
	h.wantCode(err, semantics.ArgumentOutOfRange)
	_, err = h.broker.RenewLocks(t.Context(), orders, nil)
	h.wantCode(err, semantics.InvalidArgument)
	h.Advance(lock - ms) // the refused calls extended nothing
	h.wantCounts(500, 0, 0)
}

func testLOCK_6_EndedLockGivesBackCounted(_ *testing.T, h *fixture) {
	looks := []func(){ // each of them alone takes ended locks back
		func() { h.wantNumbers(h.receive(orders, 1), 1) },
		func() { h.peek(orders) },
		func() { h.runtime() },
	}
	for _, look := range looks {
		h.create()
		h.sendTexts(1)
		h.receiveOne(orders)
		h.Advance(lock)
		look()
		row := h.peek(orders)[0]
		h.same(row.DeliveryCount, 1)
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testLOCK_6_EndedLocksOfManyComeBackTogether(_ *testing.T, h *fixture) {
	h.create()
	const many = 700 // more than a store may want to clear in one step
	h.sendTexts(many)
	h.receive(orders, many)
	h.Advance(lock)
	var numbers []int64
	for range 100 {
		got := h.receive(orders, 1000)
		for _, m := range got {
			h.same(m.DeliveryCount, 2)
		}
		numbers = append(numbers, numbersOf(got)...)
		if len(got) == 0 {
			break
		}
	}
	h.same(len(numbers), many)
	h.wantCounts(0, many, 0)
}

func testLOCK_6_OldTokenIsDeadAtRedelivery(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	first := h.receiveOne(orders)
	h.Advance(lock)
	second := h.receiveOne(orders)
	h.lost(orders, first)
	h.same(h.renew(orders, second).Code, semantics.Code(""))
	h.abandon(orders, second)
	third := h.receiveOne(orders)
	h.lost(orders, second)
	h.complete(orders, third)
}

func testLOCK_7_SettleBeforeTheEndWins(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(5)
	got := h.receive(orders, 5)
	h.Advance(lock - ms)
	h.complete(orders, got[0])
	h.abandon(orders, got[1])
	h.release(orders, got[2])
	h.deadLetter(got[3])
	h.same(h.renew(orders, got[4]).Code, semantics.Code(""))
	h.wantCounts(2, 1, 1)
}

func testLOCK_7_SettleAtTheEndLoses(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(5)
	got := h.receive(orders, 5)
	h.Advance(lock) // without a call since then
	codes, err := h.broker.Complete(t.Context(), orders, tokensOf(got[0]))
	h.wantCodes(codes, err, semantics.MessageLockLost)
	codes, err = h.broker.Abandon(t.Context(), orders, tokensOf(got[1]), semantics.AbandonOptions{})
	h.wantCodes(codes, err, semantics.MessageLockLost)
	codes, err = h.broker.Release(t.Context(), orders, tokensOf(got[2]))
	h.wantCodes(codes, err, semantics.MessageLockLost)
	codes, err = h.broker.DeadLetter(t.Context(), orders, tokensOf(got[3]), why("", ""))
	h.wantCodes(codes, err, semantics.MessageLockLost)
	h.same(h.renew(orders, got[4]).Code, semantics.MessageLockLost)
	h.wantCounts(5, 0, 0)
	for _, row := range h.peek(orders) {
		h.same(row.DeliveryCount, 1) // once for the end of the lock, not again for the late call
	}
}

func testLOCK_8_AnotherBrokerMaySettle(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	other := h.newBroker(h.Store)
	renewals, err := other.RenewLocks(t.Context(), orders, tokensOf(got...))
	h.ok(err)
	h.same(renewals[0].Code, semantics.Code(""))
	h.broker.Close() // the one that took them is gone
	codes, err := other.Complete(t.Context(), orders, tokensOf(got...))
	h.settled(codes, err)
	runtime, err := other.Runtime(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same(runtime.Active, int64(0))
}
