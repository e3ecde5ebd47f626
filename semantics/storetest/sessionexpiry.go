package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What expires together.
var sessionExpiryTests = []ruleTest{
	testTTL_23_OnlyTheMessageByDefault,
	testTTL_23_TheWholeSession,
	testTTL_23_TheTriggerFirst,
	testTTL_23_LockedAreNotTouched,
	testTTL_23_EndOfTheSessionsLockFreesAll,
	testTTL_23_WhateverTriggersIt,
	testTTL_23_OtherRemovalsAreNoExpiry,
	testTTL_23_ModeOfThePresent,
	testTTL_23_BlocksItsSession,
}

func testTTL_23_OnlyTheMessageByDefault(_ *testing.T, h *fixture) {
	h.createSessions(buriesExpired)
	h.send(part("a", "1"), of("a", lasting("2", 1000*ms)), part("a", "3"))
	h.Advance(1000 * ms)
	h.wantCounts(2, 0, 1)
	h.wantNumbers(h.receive(h.accept("a"), 9), 1, 3)
}

func testTTL_23_TheWholeSession(_ *testing.T, h *fixture) {
	for _, flag := range []bool{false, true} {
		h.createSessions(expiresSessions, func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = flag })
		h.send(part("a", "deferred"), part("a", "delayed"), of("a", lasting("first", 2000*ms)), part("a", "4"), of("b", lasting("5", 9000*ms)))
		h.send(of("a", later("scheduled", h.in(5000*ms))), of("a", lasting("7", 2000*ms)), part("a", "8"), part("b", "9"))
		a := h.accept("a")
		h.setState(a, []byte("note"))
		h.setAside(a, h.receiveOne(a))
		h.abandonFor(time.Hour, a, h.receiveOne(a))
		h.closeSession(a)
		h.Advance(2000*ms - ms)
		h.same(h.messageCounts(), semantics.Runtime{Active: 8, Available: 7, Delayed: 1, Deferred: 1, Scheduled: 1})
		h.Advance(ms)
		h.wantNumbers(h.peek(orders), 5, 6, 9)
		if flag {
			h.wantNumbers(h.peek(deadOrders), 1, 2, 3, 4, 7, 8)
			for _, dead := range h.peek(deadOrders) {
				h.same([]any{dead.DeadLetterReason, dead.DeadLetteredAt, dead.State}, []any{"TTLExpiredException", h.Now(), semantics.Active})
			}
			h.wantCounted(deadOrders, 0, 1, 0, 0, 0, 0)
		} else {
			h.wantNumbers(h.peek(deadOrders))
		}
		h.wantNext("b")
		row := h.sessionRow("a")
		h.same([]int64{row.Available, row.Delayed, row.Deferred, row.Scheduled, row.StateSize}, []int64{0, 0, 0, 1, 4})
		h.sendTo("a", 1) // it can go on
		h.Advance(3000 * ms)
		h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 10, 11)
		h.drop()
	}
}

func testTTL_23_TheTriggerFirst(_ *testing.T, h *fixture) {
	h.createSessions(expiresSessions, buriesExpired)
	h.send(part("a", "1"), part("b", "2"), of("a", lasting("3", 1000*ms)), part("a", "4"), of("b", lasting("5", 1001*ms)))
	h.Advance(1000 * ms)
	h.runtime()
	h.Advance(ms)
	h.wantNumbers(h.receive(deadOrders, 9), 3, 1, 4, 5, 2)
}

func testTTL_23_LockedAreNotTouched(_ *testing.T, h *fixture) {
	h.createSessions(expiresSessions, buriesExpired)
	h.send(part("a", "1"), part("a", "2"), of("a", lasting("3", 1000*ms)), part("a", "4"), part("a", "5"))
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	h.takeDeferred(a, 1)
	got := h.receiveOne(a)
	h.Advance(1000 * ms)
	h.wantNumbers(h.peek(orders), 1, 2)
	h.wantNumbers(h.peek(deadOrders), 3, 4, 5)
	h.abandon(a, got) // its own time is not over
	h.wantNumbers(h.receive(a, 9), 2)
	h.sendTo("a", 1)
	h.wantNumbers(h.receive(a, 9), 6)
	h.closeSession(a)
	h.same(h.messageCounts(), semantics.Runtime{Active: 3, Available: 2, Deferred: 1, DeadLetter: 3})
}

// With the session's lock those of all its messages end at once, so none of them is locked when another one expires.
func testTTL_23_EndOfTheSessionsLockFreesAll(_ *testing.T, h *fixture) {
	for _, end := range []func(a semantics.Source){
		func(a semantics.Source) { h.Advance(1000 * ms); h.closeSession(a) },
		func(semantics.Source) { h.Advance(lock) },
	} {
		h.createSessions(expiresSessions, buriesExpired)
		h.send(part("a", "1"), of("a", lasting("2", 1000*ms)), part("a", "3"), part("b", "4"))
		a := h.accept("a")
		h.receive(a, 9)
		end(a)
		h.wantNumbers(h.peek(orders), 4)
		h.wantNumbers(h.receive(deadOrders, 9), 2, 1, 3)
		h.drop()
	}
}

func testTTL_23_WhateverTriggersIt(_ *testing.T, h *fixture) {
	takeFirst := func() (semantics.Source, *semantics.Received) {
		a := h.accept("a")
		return a, h.receiveOne(a)
	}
	for name, trigger := range map[string]func(){
		"release": func() { a, got := takeFirst(); h.Advance(1000 * ms); h.release(a, got) },
		"abandon": func() { a, got := takeFirst(); h.Advance(1000 * ms); h.abandon(a, got) },
		"close":   func() { a, _ := takeFirst(); h.Advance(1000 * ms); h.closeSession(a) },
		"the end of the lock": func() {
			takeFirst()
			h.Advance(lock)
		},
		"while delayed": func() { a, got := takeFirst(); h.abandonFor(time.Hour, a, got); h.Advance(1000 * ms) },
		"receive deferred": func() {
			a, got := takeFirst()
			h.setAside(a, got)
			h.Advance(1000 * ms)
			h.wantMissing(h.receiveDeferred(a, 1), "1")
		},
		"reactivate": func() {
			a, got := takeFirst()
			h.setAside(a, got)
			h.Advance(1000 * ms)
			h.wantMissing(h.reactivate(orders, 1), "1")
		},
		"alone while deferred": func() {
			h.update(expiresDeferred, "expireDeferred")
			a, got := takeFirst()
			h.setAside(a, got)
			h.Advance(1000 * ms)
		},
	} {
		h.createSessions(expiresSessions, buriesExpired)
		h.send(of("a", lasting("1", 1000*ms)), part("b", "2"), part("a", "3"))
		trigger()
		main, dead := numbersOf(h.peek(orders)), numbersOf(h.peek(deadOrders))
		if len(main) != 1 || main[0] != 2 || len(dead) != 2 {
			h.t.Errorf("%s: %v are left and %v are dead letters, want 2, and 1 and 3", name, main, dead)
		}
		h.drop()
	}
}

func testTTL_23_OtherRemovalsAreNoExpiry(_ *testing.T, h *fixture) {
	h.createSessions(expiresSessions, buriesExpired)
	for n := range int64(5) {
		h.send(of("a", lasting("m", 1000*ms)))
		h.same(h.row(orders, n+1).SessionSequence, n+1)
	}
	h.send(part("a", "stays"))
	a := h.accept("a")
	got := h.receive(a, 5)
	h.setAside(a, got[3], got[4])
	h.Advance(1000 * ms)
	h.complete(a, got[0]) // it was done, although late
	h.deadLetterIn(a, got[1])
	h.renewSession(a)
	h.same(h.deleteNumbers(orders, 4), []semantics.Code{""})
	h.wantNumbers(h.peek(orders), 3, 5, 6)
	h.same(h.purge(sessionOf("a"), broker.PurgeOptions{Deferred: true, MaxMessages: 2}), int64(2))
	h.sendTo("a", 1)
	h.complete(a, got[2])
	h.wantNumbers(h.receive(a, 9), 7)
	h.wantNumbers(h.peek(deadOrders), 2)
}

func testTTL_23_ModeOfThePresent(_ *testing.T, h *fixture) {
	h.createSessions()
	h.send(of("a", lasting("1", 1000*ms)), of("a", lasting("2", 2000*ms)), part("a", "3"))
	h.Advance(1000 * ms)
	h.wantNumbers(h.peek(orders), 2, 3)
	h.update(expiresSessions, "sessionExpiryMode")
	h.wantNumbers(h.peek(orders), 2, 3) // nothing has expired since
	h.Advance(1000 * ms)
	h.same(h.runtime(), semantics.Runtime{})
}

func testTTL_23_BlocksItsSession(_ *testing.T, h *fixture) {
	h.createSessions(expiresSessions, buriesExpired, blocksOnDeadLetter)
	h.send(part("a", "1"), of("a", lasting("2", 1000*ms)), of("a", later("3", h.in(2000*ms))), part("b", "4"))
	h.Advance(2000 * ms)
	h.wantNext("b")
	h.wantNumbers(h.peek(deadOrders), 1, 2)
	h.notFree("a")
	h.unblock("a")
	h.pass(h.wantNext("a")[0], 5) // which is not there in time to expire with the others
}
