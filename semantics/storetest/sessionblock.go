package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// What becomes of a session that lost a message (SESS-29), and of one whose time is over (TTL-23).
var sessionBlockTests = []ruleTest{
	testSESS_29_BlockedForWhateverCause,
	testSESS_29_BlockedIsPassedBy,
	testSESS_29_HolderOfABlockedSession,
	testSESS_29_OnlyOnRequest,
	testSESS_29_OnlyByDeadLetters,
	testSESS_29_UnblockGoesOn,
	testSESS_29_UnblockWhatIsNotBlocked,
	testTTL_23_OnlyTheMessageByDefault,
	testTTL_23_TheWholeSession,
	testTTL_23_TheTriggerFirst,
	testTTL_23_LockedAreNotTouched,
	testTTL_23_EndOfTheSessionsLockFreesAll,
	testTTL_23_WhateverTriggersIt,
	testTTL_23_OtherRemovalsAreNoExpiry,
	testTTL_23_ModeOfThePresent,
}

// blocked makes orders with the session a, of which one message became a dead letter and two are left, held by nobody, and with
// the session b.
func (h *fixture) blocked(changes ...change) {
	h.t.Helper()
	h.createSessions(append([]change{blocksOnDeadLetter}, changes...)...)
	h.sendTo("a", 3)
	a := h.accept("a")
	h.buryIn(a, h.receiveOne(a))
	h.closeSession(a)
	h.sendTo("b", 1)
}

func testSESS_29_BlockedForWhateverCause(_ *testing.T, h *fixture) {
	for name, cause := range map[string]func(a semantics.Source){
		"by hand":  func(a semantics.Source) { h.buryIn(a, h.receiveOne(a)) },
		"abandon":  func(a semantics.Source) { h.abandon(a, h.receiveOne(a)) },
		"lock end": func(a semantics.Source) { h.receiveOne(a); h.Advance(lock) },
		"expiry":   func(semantics.Source) { h.Advance(time.Hour) },
		"expiry in hand": func(a semantics.Source) {
			got := h.receiveOne(a)
			for range 61 {
				h.Advance(lock - ms)
				h.renewSession(a)
			}
			h.release(a, got)
		},
		"expiry when asked for": func(a semantics.Source) {
			h.setAside(a, h.receiveOne(a))
			h.Advance(time.Hour)
			h.wantMissing(h.reactivate(orders, 1), "1")
		},
	} {
		h.createSessions(blocksOnDeadLetter, buriesExpired, deliversAtMost(1))
		h.send(of("a", lasting("m", time.Hour)), part("a", "m"))
		cause(h.accept("a"))
		h.runtime()
		if row := h.sessionRow("a"); !row.Blocked || row.Available != 1 {
			h.t.Errorf("%s: the session is %+v, want it blocked", name, row)
		}
		h.wantNumbers(h.peek(deadOrders), 1)
		h.drop()
	}
}

func testSESS_29_BlockedIsPassedBy(t *testing.T, h *fixture) {
	h.blocked()
	h.wantSessions(2, 1, 0)
	h.wantNext("b")
	h.notFree("a")
	h.refused(semantics.SessionCannotBeLocked, func() error {
		return second(h.broker.AcceptSession(t.Context(), "orders", semantics.AcceptOptions{SessionID: "a", MaxWait: 20 * ms}))
	})
	h.sendTo("a", 1) // which goes on all the same
	h.wantNext()
	h.Advance(1000 * time.Hour)
	h.wantNext("b")
	h.same(h.sessionRow("a").Available, int64(3))
}

func testSESS_29_HolderOfABlockedSession(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendTo("a", 8)
	a := h.accept("a")
	got := h.receive(a, 6)
	h.setAside(a, got[0], got[1])
	h.buryIn(a, got[2])
	h.receiveNone(a)
	h.abandon(a, got[3])
	h.receiveNone(a) // not even what it had in hand
	h.complete(a, got[4])
	h.Advance(lock - ms)
	h.renewSession(a)
	h.setState(a, []byte("stuck"))
	h.wantState(h.state(a), []byte("stuck"))
	h.complete(a, h.takeDeferred(a, 2)...)
	h.ok(h.reactivate(a, 1))
	h.receiveNone(a)
	h.wantNumbers(h.peek(a), 1, 4, 6, 7, 8)
	h.buryIn(a, got[5]) // blocked it was before
	h.closeSession(a)
	h.notFree("a")
	h.unblock("a")
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 1, 4, 7, 8)
}

func testSESS_29_OnlyOnRequest(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	h.buryIn(a, h.receiveOne(a))
	h.same(h.sessionRow("a").Blocked, false)
	h.pass(a, 2) // the session goes on with the next
	h.update(blocksOnDeadLetter, "sessionOnDeadLetter")
	h.closeSession(a)
	a = h.wantNext("a")[0] // which blocks nothing by itself
	h.buryIn(a, h.receiveOne(a))
	h.closeSession(a)
	h.same(h.sessionRow("a").Blocked, true)
	h.sendTo("a", 1)
	h.notFree("a")
}

func testSESS_29_OnlyByDeadLetters(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendTo("a", 6)
	h.send(of("a", lasting("m", 1000*ms)), part("a", "m"))
	h.Advance(ms)
	a := h.accept("a")
	h.pass(a, 1)
	h.setAside(a, h.receiveOne(a))
	h.abandon(a, h.receiveOne(a))
	h.deleteNumbers(orders, 3)
	h.same(h.purge(sessionOf("a"), semantics.PurgeOptions{MaxMessages: 2, Deferred: true}), int64(2)) // 4 and 5
	h.complete(a, h.receiveOne(a))
	h.Advance(1000 * ms) // the next is dropped
	h.pass(a, 8)
	h.same(h.sessionRow("a").Blocked, false)
	h.buryTo("b")
	h.same(h.sessionRow("b").Blocked, true)
	h.complete(deadOrders, h.receiveOne(deadOrders)) // what becomes of the dead letter is nothing to the session
	h.same(h.sessionRow("b").Blocked, true)
}

// buryTo sends a message to a session nobody holds and dead-letters it.
func (h *fixture) buryTo(id string) {
	h.t.Helper()
	h.sendTo(id, 1)
	source := h.accept(id)
	h.buryIn(source, h.receiveOne(source))
	h.closeSession(source)
}

func testSESS_29_UnblockGoesOn(_ *testing.T, h *fixture) {
	h.blocked()
	h.buryTo("c")
	h.Advance(ms)
	h.unblock("a")
	h.unblock("c")
	h.same(h.sessionIDs(), []string{"a", "b"}) // of the third nothing is left
	h.Advance(ms)
	h.sendTo("d", 1)
	held := h.wantNext("b", "a", "d") // ready since it was unblocked
	h.same(h.sessionRow("a").Blocked, false)
	h.complete(held[1], h.receiveOne(held[1]))
	h.buryIn(held[1], h.receiveOne(held[1])) // it may be blocked again
	h.closeSession(held[1])
	h.same(h.sessionRow("a").Blocked, true)

	h.resubmit(semantics.ResubmitOptions{Numbers: []int64{1}})
	h.notFree("a") // until somebody says so
	h.unblock("a")
	h.wantNext("a")
}

func testSESS_29_UnblockWhatIsNotBlocked(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendEach("a", "b")
	h.accept("b")
	before := h.snapshot()
	for _, id := range []string{"a", "b", "never seen"} {
		h.unblock(id)
	}
	h.same(h.snapshot(), before)
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
		h.createSessions(expiresSessions, func(o *semantics.QueueOptions) { o.DeadLetteringOnMessageExpiration = flag })
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
		"by itself while deferred": func() {
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
	h.buryIn(a, got[1])
	h.renewSession(a)
	h.same(h.deleteNumbers(orders, 4), []semantics.Code{""})
	h.wantNumbers(h.peek(orders), 3, 5, 6)
	h.same(h.purge(sessionOf("a"), semantics.PurgeOptions{Deferred: true, MaxMessages: 2}), int64(2))
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
