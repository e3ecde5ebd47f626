package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var availableSinceTests = []ruleTest{
	testCOMP_16_AgeOfTheOldestAvailable,
	testCOMP_16_AgeOfTheFirstReadySession,
	testCOMP_16_AgeOverPartitions,
}

// What no receiver could get has no age: it would be scaled for in vain.
func testCOMP_16_AgeOfTheOldestAvailable(_ *testing.T, h *fixture) {
	h.create(delaysFor(500*ms), buriesExpired, locksFor(1000*ms))
	h.same(h.runtime().AvailableSince, time.Time{})
	h.send(later("later", h.in(5000*ms)))
	h.same(h.runtime().AvailableSince, time.Time{})
	first := h.Now()
	h.sendTexts(1)
	h.Advance(10 * ms)
	second := h.Now()
	h.sendTexts(2)
	h.same(h.runtime().AvailableSince, first)
	locked := h.receiveOne(orders)
	h.same(h.runtime().AvailableSince, second)
	h.setAside(orders, h.receiveOne(orders)) // a deferred message stays where it was
	h.same(h.runtime().AvailableSince, second)
	h.complete(orders, h.receiveOne(orders))
	h.same(h.runtime().AvailableSince, time.Time{})
	h.abandon(orders, locked) // it is delayed
	h.same(h.runtime().AvailableSince, time.Time{})
	h.Advance(500 * ms)
	h.same(h.runtime().AvailableSince, first)
	h.send(lasting("short", 100*ms))
	h.complete(orders, h.receiveOne(orders))
	h.Advance(100 * ms)
	h.same(h.runtime().AvailableSince, time.Time{}) // it has expired
}

func testCOMP_16_AgeOfTheFirstReadySession(_ *testing.T, h *fixture) {
	h.createSessions()
	h.same(h.runtime().AvailableSince, time.Time{})
	first := h.Now()
	h.sendTo("a", 1)
	h.Advance(10 * ms)
	second := h.Now()
	h.sendTo("b", 2)
	h.sendTo("a", 1)
	h.same(h.runtime().AvailableSince, first)
	a, b := h.accept("a"), h.accept("b")
	h.same(h.runtime().AvailableSince, time.Time{}) // more receivers would get nothing of these
	h.Advance(10 * ms)
	h.closeSession(b)
	h.same(h.runtime().AvailableSince, h.Now()) // it waits since now, whatever its messages do
	h.Advance(10 * ms)
	h.closeSession(a)
	h.same(h.runtime().AvailableSince, second.Add(10*ms))
}

func testCOMP_16_AgeOverPartitions(_ *testing.T, h *fixture) {
	h.spread(3)
	first := h.Now()
	for range 6 {
		h.send(text("a"))
		h.Advance(10 * ms)
	}
	h.same(h.runtime().AvailableSince, first)
	h.complete(orders, h.receive(orders, 6)...)
	h.same(h.runtime(), semantics.Runtime{SizeInBytes: h.runtime().SizeInBytes})
}
