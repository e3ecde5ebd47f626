package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var lifetimeTests = []ruleTest{
	testTTL_2_RelativeBecomesAbsolute,
	testTTL_3_NoLifetimeIsTheQueuesDefault,
	testTTL_3_NeverByDefault,
	testTTL_4_DefaultMayChangeLater,
	testTTL_5_LongerIsCutToTheDefault,
	testTTL_7_LockedExpiredShowsInCountsAndPeek,
	testTTL_8_NotHandedOutFromExpiresAtOn,
	testTTL_8_ManyExpiredAtOnce,
	testTTL_9_LockedIsNotTouched,
	testTTL_9_ExpiresWhenGivenUp,
	testTTL_9_ExpiresAtOnceWhenGivenUp,
	testTTL_10_RenewTellsExpiredInHand,
	testTTL_11_FlagDecidesBetweenMoveAndDrop,
	testTTL_11_EveryLookClearsAway,
	testTTL_12_LockedPastExpiryMovesAtItsEnd,
	testTTL_12_NotIfSettled,
	testTTL_13_ExpiryAndMaxTogether,
	testTTL_14_ShortestLifetimes,
	testTTL_15_InExactlyOnePlace,
	testTTL_19_NoExpiryInTheDeadLetterQueue,
	testTTL_21_ExpiresAtIsAlwaysReturned,
	testTTL_22_NewDefaultTouchesNothingStored,
}

func testTTL_2_RelativeBecomesAbsolute(_ *testing.T, h *fixture) {
	h.create()
	h.Advance(5 * ms)
	want := h.Now().Add(1234 * ms)
	h.send(lasting("a", 1234*ms))
	h.Advance(100 * ms)
	for _, m := range []*semantics.Received{h.peek(orders)[0], h.receiveOne(orders)} {
		h.same(m.ExpiresAt, want)
		h.same(m.EnqueuedAt.Add(*m.TimeToLive), want)
	}
}

func testTTL_3_NoLifetimeIsTheQueuesDefault(_ *testing.T, h *fixture) {
	h.create(livesFor(2000 * ms))
	h.send(text("a"), lasting("b", semantics.Never))
	for _, m := range h.peek(orders) {
		h.same(*m.TimeToLive, 2000*ms)
		h.same(m.ExpiresAt, h.Now().Add(2000*ms))
	}
	h.Advance(2000 * ms)
	h.receiveNone(orders)
}

func testTTL_3_NeverByDefault(_ *testing.T, h *fixture) {
	h.create()
	h.send(text("a"), lasting("b", semantics.Never))
	h.Advance(100 * 365 * 24 * time.Hour)
	got := h.receive(orders, 2)
	h.wantNumbers(got, 1, 2)
	for _, m := range got {
		h.same(m.ExpiresAt, time.Time{})
		h.same(m.TimeToLive, (*time.Duration)(nil))
	}
}

func testTTL_4_DefaultMayChangeLater(_ *testing.T, h *fixture) {
	h.create()
	h.update(livesFor(3000*ms), "defaultMessageTimeToLive")
	h.send(text("a"), lasting("b", 2000*ms), lasting("c", 4000*ms))
	for i, want := range []time.Duration{3000 * ms, 2000 * ms, 3000 * ms} {
		h.same(h.peek(orders)[i].ExpiresAt, h.Now().Add(want))
	}
}

func testTTL_5_LongerIsCutToTheDefault(_ *testing.T, h *fixture) {
	h.create(livesFor(2000 * ms))
	h.send(lasting("longer", 2001*ms), lasting("equal", 2000*ms), lasting("shorter", 1999*ms))
	for i, want := range []time.Duration{2000 * ms, 2000 * ms, 1999 * ms} {
		m := h.peek(orders)[i]
		h.same(*m.TimeToLive, want)
		h.same(m.ExpiresAt, h.Now().Add(want))
	}
	h.Advance(1999 * ms)
	h.wantNumbers(h.receive(orders, 3), 1, 2)
}

func testTTL_7_LockedExpiredShowsInCountsAndPeek(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("a", 1000*ms))
	h.receiveOne(orders)
	h.Advance(1000 * ms)
	h.wantCounts(0, 1, 0)
	row := h.peek(orders)[0]
	h.same([]bool{row.Locked, row.Expired}, []bool{true, true})
}

func testTTL_8_NotHandedOutFromExpiresAtOn(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("a", 1000*ms), lasting("b", 1001*ms), text("c"))
	h.Advance(1000*ms - ms)
	got := h.receive(orders, 3)
	h.wantNumbers(got, 1, 2, 3)
	h.release(orders, got...)
	h.Advance(ms) // now == ExpiresAt of the first
	h.wantNumbers(h.receive(orders, 3), 2, 3)
}

func testTTL_8_ManyExpiredAtOnce(_ *testing.T, h *fixture) {
	h.create()
	var batch []*semantics.Message
	for range 700 { // more than a store may want to clear in one step
		batch = append(batch, lasting("i", 1000*ms))
	}
	h.send(append(batch, text("last"))...)
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(orders, 10), 701)
	h.same(h.runtime().DeadLetter, int64(0))
}

func testTTL_9_LockedIsNotTouched(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms), lasting("b", 1000*ms), lasting("c", 1000*ms))
	got := h.receive(orders, 3)
	h.Advance(1001 * ms)
	h.receiveNone(orders)
	h.wantCounts(0, 3, 0)
	h.complete(orders, got[0])
	h.deadLetter(got[1])
	h.same(h.renew(orders, got[2]).LockedUntil, h.Now().Add(lock))
	h.wantCounts(0, 1, 1)
	h.same(h.peek(deadOrders)[0].DeadLetterReason, "poison") // it was settled, not expired
	h.Advance(lock - ms)
	h.complete(orders, got[2])
	h.wantCounts(0, 0, 1)
}

func testTTL_9_ExpiresWhenGivenUp(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("a", 1000*ms), lasting("b", 1000*ms), lasting("c", 1000*ms))
	got := h.receive(orders, 3)
	h.Advance(1000 * ms)
	h.abandon(orders, got[0])
	h.release(orders, got[1])
	h.receiveNone(orders)
	h.wantCounts(0, 1, 0)
	h.Advance(lock)
	h.receiveNone(orders)
	h.wantCounts(0, 0, 0)
	h.same(h.runtime().SizeInBytes, int64(0))
}

func testTTL_9_ExpiresAtOnceWhenGivenUp(_ *testing.T, h *fixture) {
	for _, giveUp := range []func(m *semantics.Received){
		func(m *semantics.Received) { h.abandon(orders, m) },
		func(m *semantics.Received) { h.release(orders, m) },
	} {
		h.create(func(o *semantics.Options) { o.MaxMessageCount = 1 })
		h.send(lasting("a", 1000*ms))
		got := h.receiveOne(orders)
		h.Advance(1000 * ms)
		h.refusedSend(semantics.EntityFull, text("b"))
		giveUp(got)
		h.send(text("b")) // the queue has free capacity without a call since then
		h.wantNumbers(h.receive(orders, 2), 2)
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testTTL_10_RenewTellsExpiredInHand(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("a", 1000*ms))
	got := h.receiveOne(orders)
	h.Advance(1000*ms - ms)
	h.same(h.renew(orders, got).ExpiredInHand, false)
	h.Advance(ms)
	h.same(h.renew(orders, got), semantics.Renewal{LockedUntil: h.Now().Add(lock), ExpiredInHand: true})
}

func testTTL_11_FlagDecidesBetweenMoveAndDrop(_ *testing.T, h *fixture) {
	for _, flag := range []bool{false, true} {
		h.create(func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = flag })
		h.send(lasting("a", 1000*ms))
		h.Advance(1000 * ms)
		h.receiveNone(orders)
		if flag {
			h.wantCounts(0, 0, 1)
			h.same(h.receiveOne(deadOrders).DeadLetterReason, "TTLExpiredException")
		} else {
			h.wantCounts(0, 0, 0)
			h.same(h.runtime().SizeInBytes, int64(0))
		}
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testTTL_11_EveryLookClearsAway(_ *testing.T, h *fixture) {
	looks := []func(){
		func() { h.receiveNone(orders) },
		func() { h.peek(orders) },
		func() { h.runtime() },
	}
	for _, look := range looks {
		h.create(buriesExpired)
		h.send(lasting("a", 1000*ms))
		h.Advance(1000 * ms)
		look()
		h.wantNumbers(h.peek(deadOrders), 1)
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testTTL_12_LockedPastExpiryMovesAtItsEnd(_ *testing.T, h *fixture) {
	giveUps := []func(m *semantics.Received){
		func(m *semantics.Received) { h.abandon(orders, m) },
		func(m *semantics.Received) { h.release(orders, m) },
		func(*semantics.Received) { h.Advance(lock) },
	}
	for i, giveUp := range giveUps {
		h.create(buriesExpired)
		h.send(lasting("a", 1000*ms))
		got := h.receiveOne(orders)
		h.Advance(1000 * ms)
		h.wantCounts(0, 1, 0)
		giveUp(got)
		h.receiveNone(orders)
		h.wantCounts(0, 0, 1)
		dead := h.peek(deadOrders)[0]
		h.same(dead.DeadLetterReason, "TTLExpiredException")
		h.same(dead.DeliveryCount, []int{1, 0, 1}[i]) // release counts nothing
		h.same(dead.DeadLetteredAt, h.Now())
		h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
	}
}

func testTTL_12_NotIfSettled(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms))
	got := h.receiveOne(orders)
	h.Advance(1000 * ms)
	h.complete(orders, got)
	h.Advance(lock)
	h.receiveNone(orders)
	h.wantCounts(0, 0, 0)
}

func testTTL_13_ExpiryAndMaxTogether(_ *testing.T, h *fixture) {
	for _, flag := range []bool{false, true} {
		for _, byLockEnd := range []bool{false, true} {
			h.create(deliversAtMost(1), func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = flag })
			h.send(lasting("a", 1000*ms))
			got := h.receiveOne(orders)
			h.Advance(lock - ms)
			if byLockEnd {
				h.Advance(ms)
				h.receiveNone(orders)
			} else {
				h.abandon(orders, got)
			}
			h.wantCounts(0, 0, 1) // one move, and never a silent loss
			want := "MaxDeliveryCountExceeded"
			if flag {
				want = "TTLExpiredException"
			}
			h.same(h.peek(deadOrders)[0].DeadLetterReason, want)
			h.ok(h.Store.DeleteEntity(h.t.Context(), semantics.QueueKind, "orders"))
		}
	}
	// A release raises no count, so only expiry is true of it.
	h.create(deliversAtMost(1))
	h.send(lasting("a", 1000*ms))
	got := h.receiveOne(orders)
	h.Advance(1000 * ms)
	h.release(orders, got)
	h.wantCounts(0, 0, 0)
}

func testTTL_14_ShortestLifetimes(_ *testing.T, h *fixture) {
	h.create()
	for _, ttl := range []time.Duration{0, -ms, -time.Hour} {
		h.refusedSend(semantics.ArgumentOutOfRange, lasting("a", ttl))
	}
	h.send(lasting("a", ms), lasting("b", ms))
	h.wantNumbers(h.receive(orders, 1), 1)
	h.Advance(ms)
	h.receiveNone(orders)
}

func testTTL_15_InExactlyOnePlace(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms), lasting("b", 2000*ms), text("c"), lasting("d", 1000*ms))
	size := h.runtime().SizeInBytes
	for _, dead := range []int64{0, 2, 3} {
		r := h.runtime()
		h.same([]int64{r.Active, r.DeadLetter, r.Total(), r.SizeInBytes}, []int64{4 - dead, dead, 4, size})
		h.same(len(h.peek(orders))+len(h.peek(deadOrders)), 4)
		h.Advance(1000 * ms)
	}
	h.wantNumbers(h.receive(deadOrders, 9), 1, 4, 2) // in order of arrival there
}

func testTTL_19_NoExpiryInTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.create(livesFor(1000 * ms))
	h.send(text("a"), text("b"))
	h.deadLetter(h.receive(orders, 2)...)
	h.Advance(1000 * time.Hour)
	h.wantNumbers(h.peek(deadOrders), 1, 2)
	got := h.receive(deadOrders, 2)
	h.wantNumbers(got, 1, 2)
	h.Advance(lock)
	h.receiveNone(orders)
	got = h.receive(deadOrders, 2)
	h.wantNumbers(got, 1, 2)
	h.abandon(deadOrders, got[0])
	h.release(deadOrders, got[1])
	h.wantCounts(0, 0, 2)
}

func testTTL_21_ExpiresAtIsAlwaysReturned(_ *testing.T, h *fixture) {
	h.create(livesFor(2000 * ms))
	h.send(text("a"))
	want := h.Now().Add(2000 * ms)
	h.same(h.peek(orders)[0].ExpiresAt, want)
	got := h.receiveOne(orders)
	h.same(got.ExpiresAt, want)
	h.deadLetter(got)
	h.same(h.peek(deadOrders)[0].ExpiresAt, want)
}

func testTTL_22_NewDefaultTouchesNothingStored(_ *testing.T, h *fixture) {
	h.create()
	h.send(text("never"))
	h.update(livesFor(1000*ms), "defaultMessageTimeToLive")
	h.send(text("short"))
	h.update(livesFor(semantics.Never), "defaultMessageTimeToLive")
	h.send(text("never again"))
	rows := h.peek(orders)
	h.same([]time.Time{rows[0].ExpiresAt, rows[1].ExpiresAt, rows[2].ExpiresAt}, []time.Time{{}, h.Now().Add(1000 * ms), {}})
	h.Advance(1000 * ms)
	h.wantNumbers(h.receive(orders, 3), 1, 3)
}
