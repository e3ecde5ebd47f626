package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What becomes of a session that lost a message to the dead letters (SESS-29).
var sessionBlockTests = []ruleTest{
	testSESS_29_BlockedForWhateverCause,
	testSESS_29_BlockedIsPassedBy,
	testSESS_29_HolderOfABlockedSession,
	testSESS_29_OnlyOnRequest,
	testSESS_29_OnlyByDeadLetters,
	testSESS_29_UnblockGoesOn,
	testSESS_29_UnblockWhatIsNotBlocked,
	testSESS_29_DeadLetterRest,
	testSESS_29_DeadLetterRestOfWhatIsNotThere,
	testSESS_29_DeadLetterRestOfAHeldSession,
	testSESS_29_DeadLetterRestOfMany,
}

// blocked creates orders with two sessions without a holder: a, of which one message is a dead letter and two are left,
// and b.
func (h *fixture) blocked(changes ...change) {
	h.t.Helper()
	h.createSessions(append([]change{blocksOnDeadLetter}, changes...)...)
	h.sendTo("a", 3)
	a := h.accept("a")
	h.deadLetterIn(a, h.receiveOne(a))
	h.closeSession(a)
	h.sendTo("b", 1)
}

func testSESS_29_BlockedForWhateverCause(_ *testing.T, h *fixture) {
	for name, cause := range map[string]func(a semantics.Source){
		"by hand":  func(a semantics.Source) { h.deadLetterIn(a, h.receiveOne(a)) },
		"abandon":  func(a semantics.Source) { h.abandon(a, h.receiveOne(a)) },
		"lock end": func(a semantics.Source) { h.receiveOne(a); h.Advance(lock) },
		"expiry":   func(semantics.Source) { h.Advance(time.Hour) },
		"expiry while locked": func(a semantics.Source) {
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
		return second(h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: "a", MaxWait: 20 * ms}))
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
	h.deadLetterIn(a, got[2])
	h.receiveNone(a)
	h.abandon(a, got[3])
	h.receiveNone(a) // not even the messages that were in flight
	h.complete(a, got[4])
	h.Advance(lock - ms)
	h.renewSession(a)
	h.setState(a, []byte("stuck"))
	h.wantState(h.state(a), []byte("stuck"))
	h.complete(a, h.takeDeferred(a, 2)...)
	h.ok(h.reactivate(a, 1))
	h.receiveNone(a)
	h.wantNumbers(h.peek(a), 1, 4, 6, 7, 8)
	h.deadLetterIn(a, got[5]) // blocked it was before
	h.closeSession(a)
	h.notFree("a")
	h.unblock("a")
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 1, 4, 7, 8)
}

func testSESS_29_OnlyOnRequest(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	h.deadLetterIn(a, h.receiveOne(a))
	h.same(h.sessionRow("a").Blocked, false)
	h.pass(a, 2) // the session goes on with the next
	h.update(blocksOnDeadLetter, "sessionOnDeadLetter")
	h.closeSession(a)
	a = h.wantNext("a")[0] // the option alone blocks no session
	h.deadLetterIn(a, h.receiveOne(a))
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
	h.same(h.purge(sessionOf("a"), broker.PurgeOptions{MaxMessages: 2, Deferred: true}), int64(2)) // 4 and 5
	h.complete(a, h.receiveOne(a))
	h.Advance(1000 * ms) // the next is dropped
	h.pass(a, 8)
	h.same(h.sessionRow("a").Blocked, false)
	h.deadLetterTo("b")
	h.same(h.sessionRow("b").Blocked, true)
	h.complete(deadOrders, h.receiveOne(deadOrders)) // what becomes of the dead letter is nothing to the session
	h.same(h.sessionRow("b").Blocked, true)
}

// deadLetterTo sends a message to a session without a holder and dead-letters it.
func (h *fixture) deadLetterTo(id string) {
	h.t.Helper()
	h.sendTo(id, 1)
	source := h.accept(id)
	h.deadLetterIn(source, h.receiveOne(source))
	h.closeSession(source)
}

func testSESS_29_UnblockGoesOn(_ *testing.T, h *fixture) {
	h.blocked()
	h.deadLetterTo("c")
	h.Advance(ms)
	h.unblock("a")
	h.unblock("c")
	h.same(h.sessionIDs(), []string{"a", "b"}) // of the third nothing is left
	h.Advance(ms)
	h.sendTo("d", 1)
	held := h.wantNext("b", "a", "d") // ready since it was unblocked
	h.same(h.sessionRow("a").Blocked, false)
	h.complete(held[1], h.receiveOne(held[1]))
	h.deadLetterIn(held[1], h.receiveOne(held[1])) // it may be blocked again
	h.closeSession(held[1])
	h.same(h.sessionRow("a").Blocked, true)

	h.resubmit(broker.ResubmitOptions{Numbers: []int64{1}})
	h.notFree("a") // until an unblock
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

func (h *fixture) deadLetterRest(id string) {
	h.t.Helper()
	h.ok(h.broker.DeadLetterRest(h.t.Context(), orders.Path, id))
}

func testSESS_29_DeadLetterRest(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.send(part("a", "1"), part("a", "deferred"), part("a", "delayed"), part("a", "4"), part("b", "5"))
	h.send(of("a", later("scheduled", h.in(5000*ms))), of("a", lasting("7", 9000*ms)))
	a := h.accept("a")
	h.setState(a, []byte("note"))
	bad := h.receiveOne(a)
	h.setAside(a, h.receiveOne(a))
	h.abandonFor(time.Hour, a, h.receiveOne(a))
	h.deadLetterIn(a, bad)
	h.closeSession(a)
	h.Advance(ms)
	size := h.runtime().SizeInBytes
	h.deadLetterRest("a")
	h.same(h.runtime().SizeInBytes, size)
	h.wantNumbers(h.peek(orders), 5, 6)
	h.wantNumbers(h.peek(deadOrders), 1, 2, 3, 4, 7) // in their order, behind the one that began it
	for _, dead := range h.peek(deadOrders)[1:] {
		h.same([]any{dead.DeadLetterReason, dead.DeadLetterErrorDescription, dead.DeadLetteredAt, dead.State, dead.SessionID},
			[]any{"SessionDeadLettered", "the rest of its session was dead-lettered", h.Now(), semantics.Active, "a"})
	}
	h.wantCounted(deadOrders, 0, 0, 1, 0, 0)
	row := h.sessionRow("a")
	h.same([]any{row.Blocked, row.Available, row.Deferred, row.Delayed, row.Scheduled, row.StateSize}, []any{false, int64(0), int64(0), int64(0), int64(1), int64(4)})
	h.wantNext("b")
	h.Advance(9000 * ms) // what was scheduled came to no harm, nor did dead letters whose time has passed
	h.sendTo("a", 1)
	a = h.wantNext("a")[0]
	h.wantNumbers(h.receive(a, 9), 8, 9)
	h.same(h.runtime().DeadLetter, int64(5))
	h.same(len(h.resubmit(broker.ResubmitOptions{})), 5) // when it is mended, in order
	h.closeSession(a)
	h.wantNumbers(h.receive(h.accept("a"), 9), 8, 9, 10, 11, 12, 13, 14)
}

func testSESS_29_DeadLetterRestOfWhatIsNotThere(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendEach("b")
	before := h.snapshot()
	h.deadLetterRest("a")
	h.same(h.snapshot(), before)
	h.deadLetterTo("a") // blocked and empty
	h.deadLetterRest("a")
	h.same(h.sessionIDs(), []string{"b"})
	h.same(h.runtime().DeadLetter, int64(1))
}

// What the holder of the session has received is the holder's, who goes on with what comes later.
func testSESS_29_DeadLetterRestOfAHeldSession(_ *testing.T, h *fixture) {
	h.createSessions(blocksOnDeadLetter)
	h.sendTo("a", 5)
	a := h.accept("a")
	got := h.receive(a, 3)
	h.deadLetterRest("a")
	h.wantNumbers(h.peek(deadOrders), 4, 5)
	h.same(h.sessionRow("a").Blocked, false)
	h.complete(a, got[0])
	h.abandon(a, got[1])
	h.sendTo("a", 1)
	h.wantNumbers(h.receive(a, 9), 2, 6)
	h.deadLetterIn(a, got[2]) // which blocks it, as it would have
	h.same(h.sessionRow("a").Blocked, true)
}

func testSESS_29_DeadLetterRestOfMany(_ *testing.T, h *fixture) {
	const messages = 1100
	h.createSessions()
	for left := messages; left > 0; left -= 100 {
		h.sendTo("a", 100)
	}
	h.sendTo("b", 3)
	h.deadLetterRest("a")
	h.same(h.messageCounts(), semantics.Runtime{Active: 3, Available: 3, DeadLetter: messages})
	h.sendTo("a", 1)
	h.wantNumbers(h.receive(h.accept("a"), 9), messages+4)
	h.wantNext("b")
}
