package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

// The end of a session's lock.
var sessionLockEndTests = []ruleTest{
	testSESS_22_ReadyForTheNext,
	testSESS_22_ExactBoundary,
	testSESS_22_EveryLookCarriesItOut,
	testSESS_22_HeldByAnother,
	testSESS_22_FencedOff,
	testSESS_22_DeadLetterCheckEach,
	testSESS_22_OneOrderWithExpiries,
	testSESS_22_RedeliveryDelayFromTheEnd,
	testSESS_22_DeferredAgain,
	testSESS_22_ManyInHand,
}

func testSESS_22_ReadyForTheNext(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 4)
	a := h.accept("a")
	h.setState(a, []byte("note"))
	got := h.receive(a, 3)
	h.complete(a, got[1])
	h.Advance(lock)
	next := h.acceptNext()
	h.same([]string{next.Session.ID, string(next.Session.State.Data)}, []string{"a", "note"})
	rows := h.receive(next.Source(), 9)
	h.wantNumbers(rows, 1, 3, 4)
	h.same([]int{rows[0].DeliveryCount, rows[1].DeliveryCount, rows[2].DeliveryCount}, []int{2, 2, 1})
	h.sessionLost(a, got...)
}

func testSESS_22_ExactBoundary(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 9)
	a := h.accept("a")
	got := h.receive(a, 6)
	h.Advance(lock - ms)
	h.setState(a, []byte("just in time"))
	h.complete(a, got[0])
	h.abandon(a, got[1])
	h.release(a, got[2])
	h.deadLetterIn(a, got[3])
	h.setAside(a, got[4])
	h.takeDeferred(a, 5)
	h.wantNumbers(h.receive(a, 2), 2, 3)
	h.Advance(ms) // without a call since then
	codes, err := h.broker.Complete(h.t.Context(), a, tokensOf(got[5]))
	h.wantCodes(codes, err, semantics.SessionLockLost)
	h.wantCode(second(h.trySetState(a, []byte("too late"))), semantics.SessionLockLost)
	h.sessionLost(a, got...)
	h.wantCounted(orders, 2, 1, 1, 1, 0, 0, 0) // 2, 3, 5 and 6 were in flight, and the end counted once for each
	h.same(string(h.take("a").Session.State.Data), "just in time")
}

// sessionLooks are the calls that carry out what is due in a queue with sessions, and touch nothing else.
func (h *fixture) sessionLooks() map[string]func() {
	ctx, looks := h.t.Context(), h.looks()
	for _, verb := range []string{"receive", "receive deferred", "receive by number"} {
		delete(looks, verb+" "+semantics.MainQueue.String()) // which need a session
	}
	looks["accept another"] = func() { h.accept("another") }
	looks["accept next"] = func() { h.acceptNext() }
	looks["list"] = func() { h.sessionIDs() }
	looks["peek in another"] = func() { h.peek(sessionOf("another")) }
	other := h.accept("other")
	looks["receive in another"] = func() {
		_, err := h.Store.Receive(ctx, other, 1, semantics.RegisterNever)
		h.ok(err)
	}
	looks["receive deferred in another"] = func() { h.wantCode(h.receiveDeferred(other, 1<<40), semantics.MessageNotFound) }
	return looks
}

func testSESS_22_EveryLookCarriesItOut(_ *testing.T, h *fixture) {
	h.createSessions()
	looks := h.sessionLooks()
	h.drop()
	for name := range looks {
		h.createSessions(deliversAtMost(1), locksFor(5000*ms))
		h.sendTo("a", 1)
		h.receiveOne(h.accept("a"))
		h.Advance(ms)
		look := h.sessionLooks()[name] // with another session whose lock ends later
		h.Advance(5000*ms - ms)
		want := h.Now()
		look()
		h.Advance(ms)
		rows := h.peek(deadOrders)
		if len(rows) != 1 || !rows[0].DeadLetteredAt.Equal(want) {
			h.t.Errorf("%s does not end a session's lock: %+v", name, rows)
		}
		h.drop()
	}
}

func testSESS_22_HeldByAnother(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 1)
	first := h.accept("a")
	got := h.receiveOne(first)
	h.Advance(lock)
	h.wantNext("a")
	h.notFree("a") // for the former holder as for anybody else
	h.sessionLost(first, got)
	h.Advance(lock)
	again := h.accept("a")
	h.same(h.receiveOne(again).DeliveryCount, 2) // the other never received
}

// A former holder that does not know what has happened cannot act on the messages, nor on the state, that another has
// now.
func testSESS_22_FencedOff(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 5)
	old := h.accept("a")
	h.setState(old, []byte("old"))
	h.setAside(old, h.receiveOne(old))
	late := append(h.receive(old, 2), h.takeDeferred(old, 1)...)
	for _, end := range []func(){
		func() { h.Advance(lock) },
		func() { h.closeSession(old) },
	} {
		end()
		h.sessionLost(old, late...) // while the session has no holder
		now := h.accept("a")
		h.setState(now, []byte("now"))
		held := append(h.receive(now, 2), h.takeDeferred(now, 1)...)
		h.sessionLost(old, append(late, held...)...) // not even with the tokens of the other
		before := h.snapshot()
		h.wantSettlements(h.settlements(now, tokensOf(late...)), len(late), semantics.MessageLockLost)
		if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
			h.t.Fatalf("tokens of an earlier holder changed something (-before +after):\n%s", diff)
		}
		h.same(string(h.state(now).Data), "now")
		h.release(now, held...)
		old, late = now, append(h.receive(now, 2), h.takeDeferred(now, 1)...)
	}
	h.complete(old, late...)
	h.wantNumbers(h.receive(old, 9), 4, 5)
}

func testSESS_22_DeadLetterCheckEach(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(2))
	h.sendTo("a", 5)
	a := h.accept("a")
	got := h.receive(a, 4)
	h.abandon(a, got[0], got[2])
	h.wantNumbers(h.receive(a, 9), 1, 3, 5)
	h.Advance(lock)
	h.wantCounts(3, 0, 2)
	h.wantNumbers(h.receive(deadOrders, 9), 1, 3)
	h.wantCounted(deadOrders, 2, 2)
	h.same(h.row(deadOrders, 1).DeadLetterReason, "MaxDeliveryCountExceeded")
	h.wantCounted(orders, 1, 1, 1)
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 2, 4, 5)
}

func testSESS_22_OneOrderWithExpiries(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(1), buriesExpired)
	h.send(of("b", lasting("m", lock)), part("a", "m"), of("c", lasting("m", lock)), part("a", "m"), of("a", lasting("m", lock)))
	a := h.accept("a")
	h.receive(a, 9)
	h.Advance(lock)
	h.wantCounts(0, 0, 5)
	dead := h.receive(deadOrders, 9)
	h.wantNumbers(dead, 1, 2, 3, 4, 5)
	var counts []int
	var reasons []string
	for _, m := range dead {
		counts, reasons = append(counts, m.DeliveryCount), append(reasons, m.DeadLetterReason)
	}
	const expired, spent = "TTLExpiredException", "MaxDeliveryCountExceeded"
	h.same(counts, []int{1, 2, 1, 2, 2}) // MSG-10: one more than is stored
	h.same(reasons, []string{expired, spent, expired, spent, expired})
}

func testSESS_22_RedeliveryDelayFromTheEnd(_ *testing.T, h *fixture) {
	h.createSessions(delaysFor(2000*ms), locksFor(5000*ms))
	h.sendTo("a", 3)
	a := h.accept("a")
	h.receive(a, 2)
	h.Advance(5000*ms + 500*ms) // no call came when the lock expired
	h.wantSessions(1, 0, 0)
	h.same(h.row(orders, 1).VisibleAt, h.in(1500*ms))
	h.same(h.row(orders, 2).VisibleAt, h.in(1500*ms))
	h.same(h.sessionRow("a").Delayed, int64(2))
	h.Advance(1500*ms - ms)
	h.wantNext() // the third is behind them
	h.Advance(ms)
	h.wantNumbers(h.receive(h.wantNext("a")[0], 9), 1, 2, 3)
}

func testSESS_22_DeferredAgain(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(2), delaysFor(time.Hour))
	h.sendTo("a", 2)
	a := h.accept("a")
	h.setAside(a, h.receive(a, 2)...)
	h.takeDeferred(a, 1)
	h.Advance(lock)
	h.same(h.messageCounts(), semantics.Runtime{Active: 2, Deferred: 2})
	h.wantCounted(orders, 1, 0)
	h.wantNext()
	a = h.accept("a")
	h.takeDeferred(a, 1, 2)
	h.Advance(lock)
	h.same(h.messageCounts(), semantics.Runtime{Active: 1, Deferred: 1, DeadLetter: 1})
	h.wantNumbers(h.peek(deadOrders), 1)
}

func testSESS_22_ManyInHand(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1000), deliversAtMost(1000))
	const many = 700 // more than a store may want to clear in one step
	h.sendTo("a", many)
	a := h.accept("a")
	h.same(len(h.receive(a, 1000)), many)
	h.Advance(lock)
	var source semantics.Source
	for range 100 {
		if next := h.acceptNext(); next.Session != nil {
			source = next.Source()
			break
		}
	}
	for n := int64(1); n <= many; {
		got := h.receive(source, 1000)
		if len(got) == 0 {
			h.t.Fatalf("only %d messages came back", n-1)
		}
		for _, m := range got {
			h.same([]int64{m.SequenceNumber, int64(m.DeliveryCount)}, []int64{n, 2})
			n++
		}
	}
	h.closeSession(source)
	h.wantCounts(many, 0, 0)
	h.wantSessions(1, 1, 0)
}
