package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var deferExpiryTests = []ruleTest{
	testTTL_18_NotRemovedByItself,
	testTTL_18_ExpiresWhenAskedFor,
	testTTL_18_NothingElseIsTaken,
	testTTL_18_ReactivateAsksToo,
	testTTL_18_ExactBoundary,
	testTTL_18_LockedIsNotTouched,
	testTTL_18_RemovalIsNoExpiry,
	testTTL_18_ExpireDeferred,
	testTTL_18_ExpireDeferredOfTheTimeOfDeferring,
}

func expiresDeferred(o *semantics.Options) { o.ExpireDeferred = true }

// deferredFor makes orders with one deferred message that lives for a second.
func (h *fixture) deferredFor(changes ...change) {
	h.t.Helper()
	h.create(changes...)
	h.send(lasting("a", 1000*ms))
	h.setAside(orders, h.receiveOne(orders))
}

func testTTL_18_NotRemovedByItself(_ *testing.T, h *fixture) {
	h.deferredFor(buriesExpired)
	h.Advance(1000 * time.Hour)
	h.receiveNone(orders)
	row := h.row(orders, 1)
	h.same([]any{row.State, row.Expired, row.Locked}, []any{semantics.Deferred, true, false})
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1})
}

func testTTL_18_ExpiresWhenAskedFor(_ *testing.T, h *fixture) {
	for _, flag := range []bool{false, true} {
		h.deferredFor(func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = flag })
		h.Advance(1000 * ms)
		h.wantMissing(h.receiveDeferred(orders, 1), "1")
		if flag {
			h.same(h.counts(), semantics.Runtime{DeadLetter: 1})
			dead := h.row(deadOrders, 1)
			h.same(dead.DeadLetterReason, "TTLExpiredException")
			h.same([]any{dead.State, dead.DeliveryCount, dead.DeadLetteredAt}, []any{semantics.Active, 0, h.Now()})
		} else {
			h.same(h.runtime(), semantics.Runtime{})
		}
		h.drop()
	}
}

func testTTL_18_NothingElseIsTaken(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("b", 1000*ms), text("stays"), lasting("a", 1000*ms))
	h.setAside(orders, h.receive(orders, 3)...)
	h.Advance(1000 * ms)
	h.wantMissing(h.receiveDeferred(orders, 3, 2, 1, 99), "3,1,99")
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1, DeadLetter: 2})
	h.wantNumbers(h.receive(deadOrders, 9), 1, 3)
	h.takeDeferred(orders, 2)
}

func testTTL_18_ReactivateAsksToo(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms), text("b"))
	h.setAside(orders, h.receive(orders, 2)...)
	h.Advance(1000 * ms)
	h.wantMissing(h.reactivate(orders, 1, 2), "1")
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1, DeadLetter: 1})
	h.drop()

	h.deferredFor(buriesExpired)
	h.ok(h.reactivate(orders, 1))
	h.Advance(1000 * ms) // active again, it expires automatically
	h.receiveNone(orders)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 1})
}

func testTTL_18_ExactBoundary(_ *testing.T, h *fixture) {
	h.deferredFor()
	h.Advance(1000*ms - ms)
	h.setAside(orders, h.takeDeferred(orders, 1)...)
	h.same(h.row(orders, 1).Expired, false)
	h.Advance(ms)
	h.same(h.row(orders, 1).Expired, true)
	h.wantMissing(h.receiveDeferred(orders, 1), "1")
}

func testTTL_18_LockedIsNotTouched(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	for range 5 {
		h.send(lasting("a", 1000*ms))
	}
	h.setAside(orders, h.receive(orders, 5)...)
	got := h.takeDeferred(orders, 1, 2, 3, 4, 5)
	h.Advance(1000 * ms)
	h.same(h.counts(), semantics.Runtime{Active: 5, Locked: 5})
	h.same(h.renew(orders, got[0]).ExpiredInHand, true)
	h.complete(orders, got[0])
	h.setAside(orders, got[1]) // permitted after ExpiresAt (TTL-9)
	h.same(h.counts(), semantics.Runtime{Active: 4, Locked: 3, Deferred: 1})
	h.abandon(orders, got[2])
	h.release(orders, got[3])
	// given up, so it expires at once
	h.same(h.counts(), semantics.Runtime{Active: 2, Locked: 1, Deferred: 1, DeadLetter: 2})
	h.Advance(lock)
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1, DeadLetter: 3})
	for _, dead := range h.receive(deadOrders, 9) {
		h.same(dead.DeadLetterReason, "TTLExpiredException")
	}
}

func testTTL_18_RemovalIsNoExpiry(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms), lasting("b", 1000*ms))
	h.setAside(orders, h.receive(orders, 2)...)
	h.Advance(1000 * ms)
	h.same(h.deleteNumbers(orders, 1), []semantics.Code{""})
	h.same(h.purge(orders, broker.PurgeOptions{Deferred: true}), int64(1))
	h.same(h.runtime(), semantics.Runtime{}) // no dead letters
}

func testTTL_18_ExpireDeferred(_ *testing.T, h *fixture) {
	for name, look := range h.looks() {
		h.deferredFor(buriesExpired, expiresDeferred)
		h.Advance(1000*ms - ms)
		h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1})
		h.Advance(ms)
		want := h.Now()
		look()
		h.Advance(ms)
		rows := h.peek(deadOrders)
		if len(rows) != 1 || !rows[0].DeadLetteredAt.Equal(want) {
			h.t.Errorf("%s does not expire a deferred message: %+v", name, rows)
		}
		h.drop()
	}
}

func testTTL_18_ExpireDeferredOfTheTimeOfDeferring(_ *testing.T, h *fixture) {
	h.deferredFor(expiresDeferred)
	h.send(lasting("b", 1000*ms))
	h.update(func(*semantics.Options) {}, "expireDeferred") // off
	h.setAside(orders, h.receiveOne(orders))
	h.Advance(1000 * ms)
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1})
	h.wantNumbers(h.peek(orders), 2)
	h.update(expiresDeferred, "expireDeferred")
	h.Advance(time.Hour)
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1})
	h.wantMissing(h.receiveDeferred(orders, 2), "2")
}
