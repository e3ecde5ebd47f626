package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Which queue takes which verbs.
var sessionKindTests = []ruleTest{
	testSESS_3_SendStartsASession,
	testSESS_4_FromTheFirstMessage,
	testSESS_4_OneYearLaterItIsTheSame,
	testSESS_4_NothingIsLeftOfAnEmptyOne,
	testSESS_5_SessionVerbsNeedAQueueWithSessions,
	testSESS_6_SendNeedsAnID,
	testSESS_6_EveryVerbNeedsASession,
	testSESS_9_PlainDataWithoutSessions,
	testSESS_34_DeadLettersHaveNoSessions,
	testRECV_11_PlainReceiveIsRefused,
	testLOCK_4_MessagesOfASessionAreNotRenewed,
	testPURGE_9_NoReceiveBySequenceInSessions,
	testERR_5_KindAfterStatus,
}

func testSESS_3_SendStartsASession(_ *testing.T, h *fixture) {
	h.createSessions()
	h.same(h.sessionIDs(), []string(nil))
	h.send(part("b", "1"), part("a", "2"), part("b", "3"), part("A", "4"))
	h.same(h.sessionIDs(), []string{"A", "a", "b"})
	h.wantSessions(3, 3, 0)
	b := h.accept("b")
	h.wantNumbers(h.receive(b, 9), 1, 3)
	m := h.row(orders, 3)
	h.same([]any{m.SessionID, m.SessionSequence}, []any{"b", int64(2)})
}

func testSESS_4_FromTheFirstMessage(_ *testing.T, h *fixture) {
	h.createSessions()
	a := h.accept("a")
	h.same(h.sessionIDs(), []string(nil)) // to hold it makes none
	h.sendTo("a", 1)
	h.same(h.sessionIDs(), []string{"a"})
	h.pass(a, 1)
	h.same(h.sessionIDs(), []string(nil)) // nor does it last longer than its messages
	h.closeSession(a)
	h.send(of("b", later("1", h.in(time.Hour))))
	h.same(h.sessionIDs(), []string{"b"}) // a scheduled message is one
}

func testSESS_4_OneYearLaterItIsTheSame(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	h.sendTo("b", 1)
	a, b := h.accept("a"), h.accept("b")
	h.pass(a, 1, 2, 3)
	h.deadLetterIn(b, h.receiveOne(b))
	h.closeSession(a, b)
	h.wantSessions(0, 0, 0)
	h.Advance(365 * 24 * time.Hour)
	h.sendEach("a", "b", "c", "a")
	var got []int64
	for _, m := range h.peek(orders) {
		got = append(got, m.SessionSequence)
	}
	h.same(got, []int64{4, 2, 1, 5}) // it goes on where it was
}

func testSESS_4_NothingIsLeftOfAnEmptyOne(_ *testing.T, h *fixture) {
	h.createSessions()
	for range 3 {
		a := h.accept("a")
		h.wantSessions(1, 0, 1)
		h.closeSession(a)
		h.same(h.runtime(), semantics.Runtime{})
		h.accept("a")
		h.Advance(lock)
		h.same(h.runtime(), semantics.Runtime{})
	}
	a := h.accept("a")
	h.setState(a, []byte("note"))
	h.setState(a, nil)
	h.closeSession(a)
	h.same(h.runtime(), semantics.Runtime{})
	h.same(h.sessionIDs(), []string(nil))
}

func testSESS_5_SessionVerbsNeedAQueueWithSessions(_ *testing.T, h *fixture) {
	h.create()
	h.send(part("a", "1"))
	got := h.receiveOne(orders)
	source := semantics.Source{Path: orders.Path, SessionLock: got.LockToken}
	before := h.snapshot()
	h.wantAll(h.everySessionVerb(source, got), semantics.SessionNotSupported)
	h.same(h.snapshot(), before)
	h.complete(orders, got)
}

func testSESS_6_SendNeedsAnID(_ *testing.T, h *fixture) {
	h.createSessions(detectsDuplicates)
	h.refusedSend(semantics.SessionIDMissing, text("1"))
	h.refusedSend(semantics.SessionIDMissing, later("1", h.in(time.Hour)))
	// which is not a session
	h.refusedSend(semantics.SessionIDMissing, &semantics.Message{MessageID: "1", PartitionKey: "a"})
	err := h.refusedSend(semantics.SessionIDMissing, part("a", "1"), text("2"), text("3"))
	h.same(err.Details[semantics.DetailIndex], "1")
	h.same(h.sendAll(part("a", "1")), []semantics.Stored{stored(1)}) // nor is its id remembered
	h.same(h.row(orders, 1).SessionSequence, int64(1))
}

func testSESS_6_EveryVerbNeedsASession(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	got := h.receiveOne(a)
	before := h.snapshot()
	errs := map[string]error{"receive deferred": h.receiveDeferred(orders, 1)}
	for _, wait := range []time.Duration{0, patience} {
		errs["receive "+wait.String()] = second(h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1, MaxWait: wait}))
	}
	named := sessionOf("a") // that it names a session does not mean to hold it
	errs["receive of one"] = second(h.broker.Receive(t.Context(), named, broker.ReceiveOptions{MaxMessages: 1}))
	errs["receive deferred of one"] = h.receiveDeferred(named, 1)
	for verb, s := range h.settlements(orders, tokensOf(got)) {
		errs[verb] = s.err
	}
	for verb, s := range h.settlements(named, tokensOf(got)) {
		errs[verb+" of one"] = s.err
	}
	h.wantAll(errs, semantics.SessionRequired)
	h.same(h.snapshot(), before)
	h.complete(a, got)
}

func testSESS_9_PlainDataWithoutSessions(_ *testing.T, h *fixture) {
	h.create()
	h.send(part("a", "1"), part("a", "2"), text("3"), part("b", "4"))
	one, other := h.receiveOne(orders), h.receiveOne(orders)
	h.same([]string{one.SessionID, other.SessionID}, []string{"a", "a"}) // two of it at a time, in different hands
	h.same([]int64{one.SessionSequence, other.SessionSequence}, []int64{0, 0})
	h.complete(orders, other) // in any order
	h.abandonFor(time.Hour, orders, one)
	h.wantNumbers(h.receive(orders, 9), 3, 4)
	h.wantSessions(0, 0, 0)
}

func testSESS_34_DeadLettersHaveNoSessions(t *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1))
	h.sendTo("a", 3)
	a := h.accept("a")
	for range 3 {
		h.deadLetterIn(a, h.receiveOne(a))
	}
	h.closeSession(a)
	one, rest := h.receiveOne(deadOrders), h.receive(deadOrders, 9) // two hands, and more than one in flight
	h.wantNumbers(append([]*semantics.Received{one}, rest...), 1, 2, 3)
	for i, m := range append(rest, one) {
		h.same([]any{m.SessionID, m.SessionSequence}, []any{"a", int64((i+1)%3 + 1)})
	}
	h.abandonFor(time.Hour, deadOrders, one) // which delays no other message
	h.release(deadOrders, rest...)
	h.wantNumbers(h.receive(deadOrders, 9), 2, 3)
	h.same(h.sessionIDs(), []string(nil))

	for _, source := range []semantics.Source{{Path: "orders", SessionLock: a.SessionLock}, sessionOf("a")} {
		source.SubQueue = semantics.DeadLetterQueue
		h.refused(semantics.SessionNotSupported, func() error {
			return second(h.broker.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1}))
		})
		h.refused(semantics.SessionNotSupported, func() error {
			return second(h.broker.Peek(t.Context(), source, 0, 1, semantics.ShowAll))
		})
		h.refused(semantics.SessionNotSupported, func() error {
			return second(h.broker.Purge(t.Context(), source, broker.PurgeOptions{}))
		})
	}
}

func testRECV_11_PlainReceiveIsRefused(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	for _, wait := range []time.Duration{0, patience} { // at once, not only when the wait is over
		for _, mode := range []semantics.Mode{semantics.PeekLock, semantics.ReceiveAndDelete} {
			h.refused(semantics.SessionRequired, func() error {
				return second(h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1, MaxWait: wait, Mode: mode}))
			})
		}
	}
	a := h.accept("a")
	h.deadLetterIn(a, h.receiveOne(a))
	h.wantNumbers(h.receive(deadOrders, 9), 1)
}

func testLOCK_4_MessagesOfASessionAreNotRenewed(t *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 2)
	a := h.accept("a")
	got := h.receive(a, 2)
	h.Advance(ms)
	for _, source := range []semantics.Source{a, orders, {Path: "orders", SessionLock: semantics.NewLockToken()}} {
		h.refused(semantics.InvalidOperation, func() error {
			return second(h.broker.RenewLocks(t.Context(), source, tokensOf(got...)))
		})
	}
	h.deadLetterIn(a, got[0])
	h.same(h.renew(deadOrders, h.receiveOne(deadOrders)).LockedUntil, h.in(lock)) // there they are
	h.Advance(lock - ms)
	h.sessionLost(a, got[1]) // nothing was extended
}

func testPURGE_9_NoReceiveBySequenceInSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	for _, source := range []semantics.Source{orders, a, {Path: "orders", SessionLock: semantics.NewLockToken()}} {
		h.refused(semantics.InvalidOperation, func() error { return h.receiveNumbers(source, 1) })
		h.refused(semantics.InvalidOperation, func() error { return h.receiveNumbers(source, 99) })
	}
	h.deadLetterIn(a, h.receive(a, 2)...)
	h.complete(deadOrders, h.takeNumbers(deadOrders, 2)...)
	h.wantNumbers(h.peek(deadOrders), 1)
}

// Existence, status, kind, and the lock last.
func testERR_5_KindAfterStatus(t *testing.T, h *fixture) {
	receiving := []string{
		"receive", "wait", "receive deferred", "reactivate", "peek", "purge", "delete by number", "state", "set state", "clear state",
		"set state of version 0",
	}
	for _, requires := range []bool{false, true} {
		want := semantics.SessionNotSupported
		if requires {
			want = semantics.SessionLockLost
		}
		h.create(func(o *semantics.Options) { o.RequiresSession = requires })
		h.wantAll(h.holderVerbs(unheld()), want)
		h.setStatus(semantics.StatusReceiveDisabled)
		for verb, err := range h.holderVerbs(unheld()) {
			code := want // renew and close are allowed like settlements (STAT-2)
			if slices.Contains(receiving, verb) {
				code = semantics.EntityDisabled
			}
			if got := h.codeOf(err); got != code {
				t.Errorf("%s with sessions %v: got %v, want %s", verb, requires, err, code)
			}
		}
		h.wantCode(second(h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1})), semantics.EntityDisabled)
		h.drop()
	}
}
