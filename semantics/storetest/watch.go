package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// These tests look at what Broker builds its waits on.
var watchTests = []ruleTest{
	testRECV_10_WatchTellsArrivals,
	testRECV_10_WatchOfDeadLetters,
	testRECV_10_PassOnWakesWhoWaits,
	testRECV_10_RegisterAlwaysLosesNothing,
	testRECV_5_RecheckAfterTheNextLockEnd,
	testRECV_5_RecheckAfterWhatIsDueNext,
	testRECV_5_RecheckIsNotBusy,
	testENT_8_DeleteWakesEveryone,
	testENT_10_UpdateWakesEveryone,
}

// watch subscribes in the store and registers for one wake-up as a receive that found nothing does.
func (h *fixture) watch(source semantics.Source) semantics.Watch {
	h.t.Helper()
	w, err := h.Store.Watch(h.t.Context(), source)
	h.ok(err)
	h.t.Cleanup(w.Close)
	h.registerEmpty(source)
	return w
}

func (h *fixture) registerEmpty(source semantics.Source) {
	h.t.Helper()
	batch, err := h.Store.Receive(h.t.Context(), source, 10, semantics.RegisterIfEmpty)
	h.ok(err)
	h.wantNumbers(batch.Messages)
}

func (h *fixture) awaitWake(w semantics.Watch) int {
	h.t.Helper()
	select {
	case n := <-w.C():
		return n
	case <-time.After(patience):
		h.t.Fatal("no wake-up came")
		return 0
	}
}

func testRECV_10_WatchTellsArrivals(_ *testing.T, h *fixture) {
	h.create()
	w := h.watch(orders)
	h.sendTexts(3)
	h.same(h.awaitWake(w), 3)
	got := h.receive(orders, 3)
	h.registerEmpty(orders)
	h.abandon(orders, got[:2]...)
	h.same(h.awaitWake(w), 2)
	h.receive(orders, 2)
	h.registerEmpty(orders)
	h.release(orders, got[2])
	h.same(h.awaitWake(w), 1)
}

func testRECV_10_WatchOfDeadLetters(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	w := h.watch(deadOrders)
	h.deadLetter(got...)
	h.same(h.awaitWake(w), 2)
}

func testRECV_10_PassOnWakesWhoWaits(t *testing.T, h *fixture) {
	h.create()
	w := h.watch(orders)
	h.sendTexts(2)
	h.same(h.awaitWake(w), 2)
	_, err := h.Store.Receive(t.Context(), orders, 1, semantics.RegisterAlways) // leaves one behind
	h.ok(err)
	h.ok(h.Store.PassOn(t.Context(), orders))
	h.awaitWake(w)

	// There is nothing to pass on, and nothing to pass it on for.
	h.receiveOne(orders)
	h.ok(h.Store.PassOn(t.Context(), orders))
	h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	h.ok(h.Store.PassOn(t.Context(), orders))
}

func testRECV_10_RegisterAlwaysLosesNothing(t *testing.T, h *fixture) {
	h.create()
	w := h.watch(orders)
	for range 5 {
		h.sendTexts(1)
		h.awaitWake(w)
		// One receive got a message while others still wait: the next arrival must wake them.
		batch, err := h.Store.Receive(t.Context(), orders, 1, semantics.RegisterAlways)
		h.ok(err)
		h.same(len(batch.Messages), 1)
	}
}

// recheck is how long a receive that finds nothing may sleep.
func (h *fixture) recheck(source semantics.Source) time.Duration {
	h.t.Helper()
	batch, err := h.Store.Receive(h.t.Context(), source, 1, semantics.RegisterNever)
	h.ok(err)
	h.wantNumbers(batch.Messages)
	return batch.RecheckAfter
}

func testRECV_5_RecheckAfterTheNextLockEnd(_ *testing.T, h *fixture) {
	recheck := h.recheck
	h.create() // locks for a minute
	h.same(recheck(orders), 10*time.Second)
	h.sendTexts(2)
	h.deadLetter(h.receiveOne(orders))
	h.receiveOne(orders)
	h.Advance(100 * ms)
	h.receiveOne(deadOrders)
	h.same(recheck(orders), 10*time.Second)
	h.Advance(lock - 600*ms)
	h.same(recheck(orders), 500*ms)
	h.same(recheck(deadOrders), 500*ms) // what ends on one side may bring something to the other
	h.Advance(499 * ms)
	h.same(recheck(orders), ms)
	h.same(recheck(semantics.Source{Path: h.createNamed("short", locksFor(40*ms)).Name}), 40*ms)
}

// Whatever is due next may bring something to either side.
func testRECV_5_RecheckAfterWhatIsDueNext(_ *testing.T, h *fixture) {
	for name, prepare := range map[string]func(){
		"activation": func() { h.send(later("a", h.in(700*ms))) },
		"delay":      func() { h.sendTexts(1); h.abandonFor(700*ms, orders, h.receiveOne(orders)) },
		"dead letter delay": func() {
			h.deadLetterTexts("a")
			h.abandonFor(700*ms, deadOrders, h.receiveOne(deadOrders))
		},
		"expiry while delayed": func() {
			h.send(lasting("a", 700*ms))
			h.abandonFor(time.Hour, orders, h.receiveOne(orders))
		},
		"expiry while deferred": func() {
			h.update(expiresDeferred, "expireDeferred")
			h.send(lasting("a", 700*ms))
			h.setAside(orders, h.receiveOne(orders))
		},
	} {
		h.create()
		prepare()
		if got := [2]time.Duration{h.recheck(orders), h.recheck(deadOrders)}; got != [2]time.Duration{700 * ms, 700 * ms} {
			h.t.Errorf("%s: recheck after %s, want 700ms on both sides", name, got)
		}
		h.drop()
	}
}

// A message that has expired but must be settled or requested first must not make waiting receives look all the time.
func testRECV_5_RecheckIsNotBusy(_ *testing.T, h *fixture) {
	h.create()
	h.send(lasting("deferred", 1000*ms), lasting("locked", 1000*ms))
	h.setAside(orders, h.receiveOne(orders))
	h.receiveOne(orders)
	h.Advance(5000 * ms)
	h.same([]time.Duration{h.recheck(orders), h.recheck(deadOrders)}, []time.Duration{10 * time.Second, 10 * time.Second})
	h.Advance(lock)
	h.same([]time.Duration{h.recheck(orders), h.recheck(deadOrders)}, []time.Duration{10 * time.Second, 10 * time.Second})
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1})
}

func testENT_8_DeleteWakesEveryone(t *testing.T, h *fixture) {
	h.create()
	w, dead := h.watch(orders), h.watch(deadOrders)
	h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	h.same(h.awaitWake(w), 0)
	h.same(h.awaitWake(dead), 0)
}

func testENT_10_UpdateWakesEveryone(_ *testing.T, h *fixture) {
	h.create()
	w, dead := h.watch(orders), h.watch(deadOrders)
	h.update(deliversAtMost(3), "maxDeliveryCount")
	h.same(h.awaitWake(w), 0)
	h.same(h.awaitWake(dead), 0)
}
