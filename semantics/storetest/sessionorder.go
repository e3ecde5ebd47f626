package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Order within a session, and how many of its messages are in flight.
var sessionOrderTests = []ruleTest{
	testSESS_25_OrderOfAcceptance,
	testSESS_25_NoOvertakingAfterClose,
	testSESS_26_NextOnlyAfterTheFormerIsSettled,
	testSESS_27_SeveralInOrder,
	testSESS_27_LimitOfThePresent,
	testSESS_27_DeferredAreNotInFlight,
	testSESS_27_LimitIsPerSession,
	testSESS_28_AbandonedComesNext,
	testSESS_28_ReleasedComesNext,
	testSESS_28_SeveralGivenBack,
	testSESS_28_LockEndGivesAllBack,
	testSESS_29_TakenOutIsSkipped,
	testSESS_29_ResentLosesItsPlace,
	testSESS_29_OnlyMessageTakenOut,
	testRECV_3_ReceiveAndDeleteInASession,
}

func testSESS_25_OrderOfAcceptance(_ *testing.T, h *fixture) {
	h.createSessions()
	for range 4 {
		h.sendEach("a", "b", "a")
	}
	a, b := h.accept("a"), h.accept("b")
	var sequences []int64
	for range 8 {
		m := h.receiveOne(a)
		sequences = append(sequences, m.SessionSequence)
		h.complete(a, m)
	}
	h.same(sequences, []int64{1, 2, 3, 4, 5, 6, 7, 8})
	h.wantNumbers(h.receive(b, 9), 2, 5, 8, 11)
}

func testSESS_25_NoOvertakingAfterClose(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 5)
	for range 3 {
		a := h.accept("a")
		got := h.receive(a, 4)
		h.wantNumbers(got, 1, 2, 3, 4)
		h.closeSession(a)
		b := h.accept("a")
		h.wantNumbers(h.receive(b, 1), 1)
		h.wantNumbers(h.receive(b, 9), 2, 3, 4, 5)
		h.Advance(lock)
	}
	a := h.accept("a")
	h.complete(a, h.receive(a, 4)[1]) // 2
	h.closeSession(a)
	h.wantNumbers(h.receive(h.accept("a"), 9), 1, 3, 4, 5)
}

func testSESS_26_NextOnlyAfterTheFormerIsSettled(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1), deliversAtMost(1000))
	h.sendTo("a", 5)
	a := h.accept("a")
	one := func(number int64) *semantics.Received {
		got := h.receive(a, 9) // however many are asked for
		h.wantNumbers(got, number)
		h.receiveNone(a)
		return got[0]
	}
	h.complete(a, one(1))
	h.deadLetterIn(a, one(2))
	h.setAside(a, one(3))
	for range 3 {
		h.abandon(a, one(4)) // the same message again
		h.release(a, one(4))
	}
	got := one(4)
	h.Advance(lock - ms)
	h.renewSession(a)
	h.receiveNone(a) // time does not help
	h.sendTo("a", 3)
	h.receiveNone(a)
	h.complete(a, got)
	one(5)
}

func testSESS_27_SeveralInOrder(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 150)
	a := h.accept("a")
	got := append(h.receive(a, 40), h.receive(a, 1000)...) // 100 are permitted
	h.same(len(got), 100)
	for i, m := range got {
		h.same(m.SequenceNumber, int64(i+1))
	}
	h.receiveNone(a)
	h.complete(a, got[7], got[3], got[90])
	h.wantNumbers(h.receive(a, 9), 101, 102, 103)
	h.receiveNone(a)
	h.same(h.sessionRow("a").Locked, int64(100))
}

func testSESS_27_LimitOfThePresent(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(2))
	h.sendTo("a", 6)
	a := h.accept("a")
	got := h.receive(a, 9)
	h.wantNumbers(got, 1, 2)
	h.update(sessionInFlight(4), "sessionInFlight")
	got = append(got, h.receive(a, 9)...)
	h.wantNumbers(got, 1, 2, 3, 4)
	h.update(sessionInFlight(2), "sessionInFlight") // fewer than there are
	for _, m := range got[:2] {
		h.receiveNone(a)
		h.complete(a, m)
	}
	h.receiveNone(a)
	h.complete(a, got[2])
	h.wantNumbers(h.receive(a, 9), 5)
}

func testSESS_27_DeferredAreNotInFlight(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(1))
	h.sendTo("a", 4)
	a := h.accept("a")
	for range 2 {
		h.setAside(a, h.receiveOne(a))
	}
	held := h.takeDeferred(a, 1, 2)
	h.wantNumbers(h.receive(a, 9), 3)
	h.receiveNone(a)
	h.complete(a, held...)
	h.receiveNone(a)
	h.same(h.messageCounts(), semantics.Runtime{Active: 2, Available: 1, Locked: 1})
}

func testSESS_27_LimitIsPerSession(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(2))
	h.sendTo("a", 3)
	h.sendTo("b", 3)
	a, b := h.accept("a"), h.accept("b")
	h.wantNumbers(h.receive(a, 9), 1, 2)
	h.wantNumbers(h.receive(b, 9), 4, 5)
	h.closeSession(a)
	h.wantNumbers(h.receive(h.accept("a"), 9), 1, 2) // what another had in flight does not count
}

func testSESS_28_AbandonedComesNext(_ *testing.T, h *fixture) {
	for k := range 4 { // abandoned of the four that are in flight
		h.createSessions()
		h.sendTo("a", 6)
		a := h.accept("a")
		got := h.receive(a, 4)
		h.abandon(a, got[k])
		next := h.receiveOne(a)
		h.same([]int64{next.SequenceNumber, int64(next.DeliveryCount)}, []int64{int64(k + 1), 2})
		h.wantNumbers(h.receive(a, 1), 5)
		for i, m := range got { // the others stayed in flight
			if i != k {
				h.complete(a, m)
			}
		}
		h.abandon(a, next)
		h.wantNumbers(h.receive(a, 9), int64(k+1), 6)
		h.drop()
	}
}

func testSESS_28_ReleasedComesNext(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 6)
	a := h.accept("a")
	got := h.receive(a, 4)
	h.release(a, got[2])
	delivery := h.receiveAs(a, 1, semantics.PeekLock)
	h.wantNumbers(delivery.Messages, 3)
	h.ok(delivery.Undelivered(h.t.Context()))
	h.wantNumbers(h.receive(a, 2), 3, 5)
}

func testSESS_28_SeveralGivenBack(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(4))
	h.sendTo("a", 6)
	a := h.accept("a")
	got := h.receive(a, 9)
	h.abandon(a, got[2])
	h.release(a, got[0])
	h.abandon(a, got[3])
	h.wantNumbers(h.receive(a, 2), 1, 3)
	h.wantNumbers(h.receive(a, 9), 4) // with these and the second there are four
	h.complete(a, got[1])
	h.wantNumbers(h.receive(a, 9), 5)
}

func testSESS_28_LockEndGivesAllBack(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 5)
	a := h.accept("a")
	got := h.receive(a, 4)
	h.abandon(a, got[1])
	h.complete(a, got[0])
	h.Advance(lock)
	rows := h.receive(h.wantNext("a")[0], 9)
	h.wantNumbers(rows, 2, 3, 4, 5)
	h.same([]int{rows[0].DeliveryCount, rows[1].DeliveryCount}, []int{2, 2})
}

func testSESS_29_TakenOutIsSkipped(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(2), sessionInFlight(1))
	h.sendTo("a", 3)
	h.send(of("a", lasting("m", 1000*ms)))
	h.sendTo("a", 1)
	a := h.accept("a")
	h.setAside(a, h.receiveOne(a))
	h.deadLetterIn(a, h.receiveOne(a))
	h.abandon(a, h.receiveOne(a))
	h.abandon(a, h.receiveOne(a)) // and that was its last delivery
	h.Advance(1000 * ms)
	h.pass(a, 5)
	h.wantNumbers(h.peek(orders), 1)
	h.wantNumbers(h.peek(deadOrders), 2, 3)
	h.same(h.sessionRow("a").Blocked, false)
}

func testSESS_29_ResentLosesItsPlace(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	first := h.receiveOne(a)
	h.deadLetterIn(a, first)
	again := first.Message
	h.send(&again)
	h.resubmit(broker.ResubmitOptions{})
	got := h.receive(a, 9)
	h.wantNumbers(got, 2, 3, 4, 5)
	h.same([]any{got[2].MessageID, got[3].MessageID}, []any{"m1", "m1"})
	h.same([]int64{got[2].SessionSequence, got[3].SessionSequence}, []int64{4, 5})
}

func testSESS_29_OnlyMessageTakenOut(_ *testing.T, h *fixture) {
	for name, take := range map[string]func(a semantics.Source){
		"complete":    func(a semantics.Source) { h.complete(a, h.receiveOne(a)) },
		"dead-letter": func(a semantics.Source) { h.deadLetterIn(a, h.receiveOne(a)) },
		"max count":   func(a semantics.Source) { h.abandon(a, h.receiveOne(a)) },
		"defer":       func(a semantics.Source) { h.setAside(a, h.receiveOne(a)) },
		"delay":       func(a semantics.Source) { h.abandonFor(time.Hour, a, h.receiveOne(a)) },
		"expiry":      func(semantics.Source) { h.Advance(1000 * ms) },
		"expiry while locked": func(a semantics.Source) {
			got := h.receiveOne(a)
			h.Advance(1000 * ms)
			h.release(a, got)
		},
		"purge":            func(semantics.Source) { h.Advance(ms); h.purge(orders, broker.PurgeOptions{}) },
		"delete by number": func(a semantics.Source) { h.deleteNumbers(a, 1) },
		"receive and delete": func(a semantics.Source) {
			h.ok(h.receiveAs(a, 9, semantics.ReceiveAndDelete).Delivered(h.t.Context()))
		},
	} {
		h.createSessions(deliversAtMost(1 + int64(btoi(name == "delay"))))
		h.send(of("a", lasting("m", 1000*ms)))
		a := h.accept("a")
		take(a)
		h.receiveNone(a)
		h.setState(a, []byte("held on"))
		h.Advance(ms)
		h.same(h.renewSession(a), h.in(lock))
		h.wantNext()
		h.wantSessions(1, 0, 1)
		h.setState(a, nil)
		h.closeSession(a)
		h.wantNext()
		h.Advance(1000 * ms)
		h.sendTo("a", 1)
		h.pass(h.wantNext("a")[0], 2)
		h.drop()
	}
}

func testRECV_3_ReceiveAndDeleteInASession(_ *testing.T, h *fixture) {
	h.createSessions(sessionInFlight(2))
	h.sendTo("a", 3)
	a := h.accept("a")
	taken := h.receiveAs(a, 9, semantics.ReceiveAndDelete)
	h.wantNumbers(taken.Messages, 1, 2)
	h.same([]bool{taken.Messages[0].LockToken.IsZero(), taken.Messages[0].LockedUntil.IsZero()}, []bool{true, true})
	h.receiveNone(a)
	h.ok(taken.Delivered(h.t.Context()))
	h.wantNumbers(h.peek(orders), 3)
	lost := h.receiveAs(a, 9, semantics.ReceiveAndDelete)
	h.closeSession(a)
	h.ok(lost.Delivered(h.t.Context())) // too late: it was given back by then
	h.wantNumbers(h.receive(h.accept("a"), 9), 3)
}
