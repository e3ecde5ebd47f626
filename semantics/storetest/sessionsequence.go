package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Numbers and places within a session.
var sessionSequenceTests = []ruleTest{
	testDLQ_23_NewPlaceAtTheEnd,
	testDLQ_23_NeedsASessionID,
	testDLQ_23_IntoAQueueWithoutSessions,
	testMSG_18_PositionInASession,
	testMSG_19_GapFreePerSession,
	testMSG_19_SticksToTheMessage,
	testMSG_19_RefusedAndDuplicatesGetNone,
}

func testDLQ_23_NewPlaceAtTheEnd(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendEach("a", "b", "a", "a")
	a, b := h.accept("a"), h.accept("b")
	h.deadLetterIn(a, h.receive(a, 2)...)
	h.deadLetterIn(b, h.receiveOne(b))
	h.closeSession(b)
	h.Advance(ms)
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 5}, [2]int64{2, 6}, [2]int64{3, 7}))
	got := h.receive(a, 9)
	h.wantNumbers(got, 4, 5, 7)
	h.same([]int64{got[0].SessionSequence, got[1].SessionSequence, got[2].SessionSequence}, []int64{3, 4, 5})
	h.same([]string{got[1].SessionID, got[2].SessionID}, []string{"a", "a"})
	h.same(h.row(orders, 6).SessionSequence, int64(2))
	h.wantNext("b") // ready by what was sent again
	h.wantNumbers(h.peek(deadOrders))
}

func testDLQ_23_NeedsASessionID(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("sessions", hasSessions)
	h.send(text("none"), part("a", "one"), text("none either"))
	h.deadLetter(h.receive(orders, 9)...)
	h.same(h.resubmit(broker.ResubmitOptions{Target: "sessions"}), []broker.ResubmitResult{
		notMoved(1, semantics.SessionIDMissing), moved([2]int64{2, 1})[0], notMoved(3, semantics.SessionIDMissing),
	})
	h.wantNumbers(h.peek(deadOrders), 1, 3)
	rows := h.peek(semantics.Source{Path: "sessions"})
	h.wantNumbers(rows, 1)
	h.same([]any{rows[0].SessionID, rows[0].SessionSequence}, []any{"a", int64(1)})
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 4}, [2]int64{3, 5})) // home they may go
}

func testDLQ_23_IntoAQueueWithoutSessions(_ *testing.T, h *fixture) {
	h.createSessions()
	h.createNamed("plain")
	h.sendTo("a", 2)
	a := h.accept("a")
	h.deadLetterIn(a, h.receive(a, 2)...)
	h.resubmit(broker.ResubmitOptions{Target: "plain"})
	plain := semantics.Source{Path: "plain"}
	got := h.receive(plain, 9)
	h.wantNumbers(got, 1, 2)
	h.same([]any{got[1].SessionID, got[1].SessionSequence}, []any{"a", int64(0)})
	h.sendTo("a", 1)
	h.same(h.row(orders, 3).SessionSequence, int64(3))
}

func testMSG_18_PositionInASession(_ *testing.T, h *fixture) {
	labelled := func(id, label string) *semantics.Message { return &semantics.Message{SessionID: id, Subject: label} }
	h.createSessions()
	h.send(labelled("a", "start"), labelled("b", "start"), labelled("a", "content"), labelled("b", "content"))
	h.send(labelled("a", "content"), labelled("b", "content"), labelled("b", "end"), labelled("a", "content"), labelled("a", "end"))
	for _, id := range []string{"a", "b"} {
		var numbers, positions []int64
		var start *semantics.Received
		source := h.accept(id)
		for m := h.receiveOne(source); m.Subject != "end"; m = h.receiveOne(source) {
			if m.Subject == "start" {
				start = m
			} else {
				numbers, positions = append(numbers, m.SequenceNumber-start.SequenceNumber), append(positions, m.SessionSequence-start.SessionSequence)
			}
			h.complete(source, m)
		}
		// it rises, with gaps where others came between
		h.same(numbers, map[string][]int64{"a": {2, 4, 7}, "b": {2, 4}}[id])
		h.same(positions, map[string][]int64{"a": {1, 2, 3}, "b": {1, 2}}[id]) // these are exact
	}
}

func testMSG_19_GapFreePerSession(_ *testing.T, h *fixture) {
	h.createSessions()
	want := map[string]int64{}
	for n := range 40 {
		id := []string{"a", "b", "c"}[n*n%7%3]
		want[id]++
		number := h.sendTo(id, 1)
		h.same(h.row(orders, number).SessionSequence, want[id])
		if n%4 == 0 {
			source := h.accept(id)
			h.complete(source, h.receiveOne(source))
			h.closeSession(source)
		}
	}
	h.same(len(want), 3)
}

func testMSG_19_SticksToTheMessage(_ *testing.T, h *fixture) {
	h.createSessions()
	h.sendTo("a", 3)
	a := h.accept("a")
	h.pass(a, 1)
	got := h.receiveOne(a)
	check := func(m *semantics.Received) { h.t.Helper(); h.same(m.SessionSequence, int64(2)) }
	check(got)
	h.abandon(a, got)
	got = h.receiveOne(a)
	check(got)
	h.setAside(a, got)
	check(h.row(orders, 2))
	got = h.takeDeferred(a, 2)[0]
	check(got)
	h.closeSession(a)
	h.ok(h.reactivate(orders, 2))
	check(h.row(orders, 2))
	h.receiveOne(h.accept("a"))
	h.Advance(lock)
	a = h.accept("a")
	got = h.receiveOne(a)
	check(got)
	h.deadLetterIn(a, got)
	check(h.row(deadOrders, 2))
	check(h.receiveOne(deadOrders))
}

func testMSG_19_RefusedAndDuplicatesGetNone(_ *testing.T, h *fixture) {
	h.createSessions(detectsDuplicates, holdsAtMost(6))
	h.send(part("a", "1"), part("a", "1"), part("a", "2"))
	h.send(part("a", "2"), part("b", "1"), part("b", "3"))
	h.refusedSend(semantics.EntityFull, part("a", "4"), part("a", "5"), part("a", "6"), part("a", "7"))
	h.send(of("a", later("8", h.in(time.Hour))))
	h.ok(h.cancel(4))
	h.send(part("a", "9"))
	h.same(h.sessions(semantics.SessionFilter{})[0].Available, int64(3))
	var got []int64
	for _, m := range h.peek(orders) {
		got = append(got, m.SessionSequence)
	}
	h.same(got, []int64{1, 2, 1, 3})
	h.same(h.sessionIDs(), []string{"a", "b"})
}
