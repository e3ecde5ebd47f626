package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Scheduled, deferred, peeked and purged messages of sessions (SESS-40).
var sessionMessageTests = []ruleTest{
	testSCHED_9_NotOfferedUntilActivation,
	testSCHED_9_PlaceAtActivation,
	testSCHED_9_ToItsHolder,
	testDEFER_7_NeedsItsSession,
	testDEFER_7_HoldsUpNobody,
	testDEFER_7_GivenBackIsDeferredAgain,
	testDEFER_7_ReactivateInASession,
	testPEEK_8_OverAllSessions,
	testPEEK_8_HolderSeesItsSession,
	testSESS_39_PeekWithoutHolding,
	testPURGE_7_OneSession,
	testPURGE_7_OfItsHolder,
	testPURGE_7_ManyAndNone,
	testPURGE_7_OddIDs,
	testPURGE_9_DeleteBySequenceInSessions,
}

func testSCHED_9_NotOfferedUntilActivation(_ *testing.T, h *fixture) {
	h.createSessions()
	h.send(of("a", later("1", h.in(1000*ms))))
	h.wantNext()
	h.wantSessions(1, 0, 0)
	a := h.accept("a") // but by its name
	h.receiveNone(a)
	h.closeSession(a)
	h.wantNext()
	h.Advance(1000*ms - ms)
	h.wantNext()
	h.Advance(ms)
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 2)
}

func testSCHED_9_PlaceAtActivation(_ *testing.T, h *fixture) {
	h.createSessions()
	h.send(of("a", later("second", h.in(1000*ms))), part("a", "m"), of("a", later("first", h.in(999*ms))), part("b", "m"))
	h.same([]int64{h.row(orders, 1).SessionSequence, h.row(orders, 2).SessionSequence}, []int64{0, 1})
	h.ok(h.cancel(h.send(of("a", later("never", h.in(1000*ms))))))
	h.sendTo("a", 1)
	h.Advance(1000 * ms)
	var ids []string
	var numbers, sequences []int64
	for _, m := range h.receive(h.accept("a"), 9) {
		ids, numbers, sequences = append(ids, m.MessageID), append(numbers, m.SequenceNumber), append(sequences, m.SessionSequence)
	}
	h.same(ids, []string{"m", "m1", "first", "second"})
	h.same(numbers, []int64{2, 6, 7, 8})
	h.same(sequences, []int64{1, 2, 3, 4})
}

func testSCHED_9_ToItsHolder(_ *testing.T, h *fixture) {
	h.createSessions()
	h.send(of("a", later("1", h.in(10*ms))), of("b", later("2", h.in(10*ms))))
	a := h.accept("a")
	h.Advance(10 * ms)
	h.wantNext("b")
	h.pass(a, 3)
	h.send(of("a", later("3", h.in(10*ms))))
	h.closeSession(a)
	h.Advance(10 * ms)
	h.wantNext("a")
}

func testDEFER_7_NeedsItsSession(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b", "a")
	a, b := h.accept("a"), h.accept("b")
	got := h.receiveOne(a)
	h.refused(semantics.SessionRequired, func() error { return second(h.broker.Defer(t.Context(), orders, tokensOf(got), nil)) })
	h.setAside(a, got)
	h.setAside(b, h.receiveOne(b))
	h.refused(semantics.SessionRequired, func() error { return h.receiveDeferred(orders, 1) })
	h.refused(semantics.MessageNotFound, func() error { return h.receiveDeferred(b, 1) })
	err := h.refused(semantics.MessageNotFound, func() error { return h.receiveDeferred(a, 2, 1, 3, 99) })
	h.same(err.Details[semantics.DetailNumbers], "2,3,99") // another session's, not deferred, unknown
	h.takeDeferred(a, 1)
	h.refused(semantics.MessageNotFound, func() error { return h.receiveDeferred(a, 1) })
	h.closeSession(b)
	h.takeDeferred(h.accept("b"), 2)
}

func testDEFER_7_HoldsUpNobody(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1))
	h.sendTo("a", 4)
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	h.pass(a, 2)
	h.setAside(a, h.receiveOne(a))
	h.closeSession(a)
	a = h.wantNext("a")[0]
	h.pass(a, 4)
	h.closeSession(a)
	h.wantNext() // deferred ones alone are nothing to receive
	a = h.accept("a")
	got := h.takeDeferred(a, 3, 1) // in the order asked for
	h.same([]int64{got[0].SessionSequence, got[1].SessionSequence}, []int64{3, 1})
	h.complete(a, got...)
}

func testDEFER_7_GivenBackIsDeferredAgain(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 4)
	a := h.accept("a")
	h.setAside(a, h.receive(a, 4)...)
	got := h.takeDeferred(a, 1, 2, 3, 4)
	h.abandon(a, got[0])
	h.release(a, got[1])
	h.setAside(a, got[2])
	h.closeSession(a)
	h.same(h.messageCounts(), semantics.Runtime{Active: 4, Deferred: 4})
	h.wantCounted(orders, 1, 0, 0, 0)
	h.wantNext()
	h.takeDeferred(h.accept("a"), 1, 2, 3, 4)
}

func testDEFER_7_ReactivateInASession(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b", "a", "b", "a")
	a, b := h.accept("a"), h.accept("b")
	h.setAside(a, h.receive(a, 2)...)
	h.setAside(b, h.receive(b, 2)...)
	h.refused(semantics.MessageNotFound, func() error {
		err := h.reactivate(a, 1, 2)
		h.wantMissing(err, "2")
		return err
	})
	h.ok(h.reactivate(a, 1))
	h.wantNumbers(h.receive(a, 9), 1, 5) // at its old place
	h.ok(h.reactivate(orders, 2, 3))     // without a session whatever session they are of
	h.wantNumbers(h.receive(b, 9), 2)
	h.wantNumbers(h.receive(a, 9), 3)
	h.closeSession(b)
	b = h.wantNext("b")[0]
	h.complete(b, h.receiveOne(b))
	h.closeSession(b)
	h.Advance(ms)
	h.ok(h.reactivate(orders, 4)) // which makes it ready
	h.wantNext("b")
}

func testPEEK_8_OverAllSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("b", "a", "b", "c")
	h.send(of("a", later("m", h.in(time.Hour))))
	a := h.accept("a")
	h.receiveOne(a)
	rows := h.peek(orders)
	h.wantNumbers(rows, 1, 2, 3, 4, 5)
	var ids []string
	var locked []bool
	for _, m := range rows {
		ids, locked = append(ids, m.SessionID), append(locked, m.Locked)
	}
	h.same(ids, []string{"b", "a", "b", "c", "a"})
	h.same(locked, []bool{false, true, false, false, false})
	h.wantNumbers(h.peekFrom(orders, 3, 1), 3)
	h.wantCounted(orders, 0, 0, 0, 0, 0)
}

// eachState makes orders with the session a that has one message in each state, 2, 4, 6, 8 and 10, and messages of b at
// the odd numbers. It returns the source of a, which is held.
func (h *fixture) eachState() semantics.Source {
	h.t.Helper()
	h.createSessions()
	batch := make([]*semantics.Message, 10)
	for i := range batch {
		batch[i] = part([]string{"b", "a"}[i%2], "m")
	}
	batch[9].ScheduledAt = h.in(time.Hour) // 10
	h.send(batch...)
	h.Advance(ms)
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))           // 2
	h.receiveOne(a)                          // 4
	h.skipFor(time.Hour, a, h.receiveOne(a)) // 6
	h.wantNumbers(h.peek(orders), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	return a
}

func testPEEK_8_HolderSeesItsSession(t *testing.T, h *fixture) {
	a := h.eachState()
	h.wantNumbers(h.peek(a), 2, 4, 6, 8, 10)
	h.wantNumbers(h.peekFrom(a, 4, 2), 4, 6)
	h.wantNumbers(h.peekFrom(a, 5, 1), 6)
	h.wantNumbers(h.peekFrom(a, 11, 1))
	for show, want := range map[semantics.Show][]int64{
		semantics.ShowAvailable: {6, 8}, semantics.ShowLocked: {4}, semantics.ShowDeferred: {2}, semantics.ShowScheduled: {10},
		semantics.ShowDeferred | semantics.ShowScheduled: {2, 10},
	} {
		h.same(h.showing(a, show), want)
		h.same(h.showing(sessionOf("a"), show), want)
	}
	rows, err := h.broker.Peek(t.Context(), a, 0, 1, semantics.ShowAvailable)
	h.ok(err)
	h.wantNumbers(rows, 6) // the limit is of those that are shown
	h.same([]any{rows[0].LockToken.IsZero(), rows[0].DeliveryCount, rows[0].SessionSequence}, []any{true, 1, int64(3)})
	h.wantNumbers(h.peek(h.accept("empty")))
	h.Advance(lock)
	h.wantCode(second(h.broker.Peek(t.Context(), a, 0, 1, semantics.ShowAll)), semantics.SessionLockLost)
}

func testSESS_39_PeekWithoutHolding(t *testing.T, h *fixture) {
	a := h.eachState()
	before := h.snapshot()
	h.same(numbersOf(h.peek(sessionOf("a"))), numbersOf(h.peek(a)))
	h.wantNumbers(h.peek(sessionOf("b")), 1, 3, 5, 7, 9)
	h.wantNumbers(h.peekFrom(sessionOf("b"), 4, 2), 5, 7)
	for _, id := range []string{"A", "a\x00", "nobody"} {
		h.wantNumbers(h.peek(sessionOf(id)))
	}
	h.same(h.snapshot(), before)
	h.closeSession(a)
	h.wantNumbers(h.peek(sessionOf("a")), 2, 4, 6, 8, 10)
	h.refused(semantics.InvalidArgument, func() error {
		return second(h.broker.Peek(t.Context(), sessionOf("\xff"), 0, 1, semantics.ShowAll))
	})
}

func testPURGE_7_OneSession(t *testing.T, h *fixture) {
	for _, c := range []struct {
		options broker.PurgeOptions
		left    []int64
	}{
		{broker.PurgeOptions{}, []int64{2, 4, 10}},
		{broker.PurgeOptions{MaxMessages: 1}, []int64{2, 4, 8, 10}},
		{broker.PurgeOptions{Deferred: true}, []int64{4, 10}},
		{broker.PurgeOptions{Scheduled: true}, []int64{2, 4}},
		{broker.PurgeOptions{Deferred: true, Scheduled: true}, []int64{4}},
		{broker.PurgeOptions{Before: time.UnixMilli(1)}, []int64{2, 4, 6, 8, 10}},
	} {
		h.eachState()
		h.same(h.purge(sessionOf("a"), c.options), int64(5-len(c.left)))
		h.wantNumbers(h.peek(sessionOf("a")), c.left...)
		h.wantNumbers(h.peek(sessionOf("b")), 1, 3, 5, 7, 9)
		h.drop()
	}
	a := h.eachState()
	for _, source := range []semantics.Source{a, sessionOf("a")} {
		h.refused(semantics.InvalidArgument, func() error {
			return second(h.broker.Purge(t.Context(), source, broker.PurgeOptions{DeadLetters: true}))
		})
	}
}

func testPURGE_7_OfItsHolder(t *testing.T, h *fixture) {
	a := h.eachState()
	h.same(h.purge(a, broker.PurgeOptions{Deferred: true, Scheduled: true}), int64(4))
	h.wantNumbers(h.peek(orders), 1, 3, 4, 5, 7, 9)
	h.same(h.purge(h.accept("empty"), broker.PurgeOptions{}), int64(0))
	h.Advance(lock)
	h.wantCode(second(h.broker.Purge(t.Context(), a, broker.PurgeOptions{})), semantics.SessionLockLost)
	h.same(h.purge(orders, broker.PurgeOptions{}), int64(6)) // without a session of all
	h.same(h.runtime(), semantics.Runtime{})
}

func testPURGE_7_ManyAndNone(_ *testing.T, h *fixture) {
	h.createSessions()
	const many = 1300 // more than a store may want to remove in one step
	h.sendTo("b", 100)
	h.sendTo("a", many)
	h.sendTo("b", 100)
	h.Advance(ms)
	h.sendTo("a", 1)
	h.same(h.purge(sessionOf("nobody"), broker.PurgeOptions{}), int64(0))
	h.same(h.purge(sessionOf("a"), broker.PurgeOptions{MaxMessages: 600}), int64(600))
	h.same(h.purge(sessionOf("a"), broker.PurgeOptions{}), int64(many-600))
	h.wantNumbers(h.peek(sessionOf("a")), many+201)
	h.same(h.sessionRow("b").Available, int64(200))
	h.wantCounts(201, 0, 0)
}

func testPURGE_7_OddIDs(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach(oddIDs...)
	h.Advance(ms)
	for i, id := range oddIDs {
		h.same(h.purge(sessionOf(id), broker.PurgeOptions{Deferred: true, Scheduled: true}), int64(1))
		h.same(h.runtime().Available, int64(len(oddIDs)-i-1))
	}
	h.same(h.runtime(), semantics.Runtime{})
}

func testPURGE_9_DeleteBySequenceInSessions(_ *testing.T, h *fixture) {
	const missing = semantics.MessageNotFound
	a := h.eachState()
	h.same(h.deleteNumbers(a, 1, 2, 4, 6, 10, 99, 2), []semantics.Code{missing, "", missing, "", missing, missing, missing})
	// without a session whatever session they are of
	h.same(h.deleteNumbers(orders, 1, 8, 4), []semantics.Code{"", "", missing})
	h.wantNumbers(h.peek(orders), 3, 4, 5, 7, 9, 10)
	h.receiveNone(a)
	h.wantNumbers(h.receive(h.accept("b"), 9), 3, 5, 7, 9)
}
