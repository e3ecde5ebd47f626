package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var resubmitDuplicateTests = []ruleTest{
	testDLQ_22_DuplicateVanishes,
	testDLQ_22_BypassDuplicates,
	testDLQ_22_RemembersTheID,
	testDLQ_22_HistoryIsFull,
	testDLQ_22_PartitionOfTheTarget,
	testDLQ_22_CountOfTheTarget,
	testDLQ_22_ModifiedSizeOfTheTarget,
	testSTAT_2_ResubmitReceivesAndSends,
}

func testDLQ_22_DuplicateVanishes(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, holdsAtMost(3))
	h.deadLetterTexts("a", "b")
	h.send(text("c"))
	h.Advance(window - ms)
	got := h.resubmit(broker.ResubmitOptions{Numbers: []int64{2}})
	h.same(got, []broker.ResubmitResult{{SequenceNumber: 2, Resubmitted: semantics.Resubmitted{Stored: duplicate(2)}}})
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1, DeadLetter: 1}) // dropped, as any duplicate
	h.same(h.runtime().SizeInBytes, int64(4))
	h.Advance(ms) // the window is over
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 4}))
}

func testDLQ_22_BypassDuplicates(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, remembersFor(20*time.Second))
	h.deadLetterTexts("a")
	h.Advance(10 * time.Second)
	h.same(h.resubmit(broker.ResubmitOptions{BypassDuplicates: true}), moved([2]int64{1, 2}))
	h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(1)})
	h.Advance(10 * time.Second) // it was not remembered again
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(3)})
}

func testDLQ_22_RemembersTheID(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("other", detectsDuplicates)
	h.deadLetterTexts("a", "a", "b")
	got := h.resubmit(broker.ResubmitOptions{Target: "other"})
	h.same(got, []broker.ResubmitResult{
		moved([2]int64{1, 1})[0], {SequenceNumber: 2, Resubmitted: semantics.Resubmitted{Stored: duplicate(1)}}, moved([2]int64{3, 2})[0],
	})
	results, err := h.broker.Send(h.t.Context(), semantics.ToQueue("other"), []*semantics.Message{text("b"), text("a"), text("c")})
	h.ok(err)
	h.same([]semantics.Stored{results[0].Stored, results[1].Stored, results[2].Stored}, []semantics.Stored{duplicate(2), duplicate(1), stored(3)})
	h.wantNumbers(h.peek(deadOrders))

	h.deadLetterTexts("a", "a")
	got = h.resubmit(broker.ResubmitOptions{Target: "other", NewMessageIDs: true}) // which are new to the target
	h.same(got, moved([2]int64{4, 4}, [2]int64{5, 5}))
}

func testDLQ_22_HistoryIsFull(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("other", detectsDuplicates, remembersAtMost(1))
	h.deadLetterTexts("a", "b", "a")
	got := h.resubmit(broker.ResubmitOptions{Target: "other"})
	h.same(got, []broker.ResubmitResult{
		moved([2]int64{1, 1})[0], notMoved(2, semantics.QuotaExceeded),
		{SequenceNumber: 3, Resubmitted: semantics.Resubmitted{Stored: duplicate(1)}},
	})
	h.wantNumbers(h.peek(deadOrders), 2)
	h.same(h.resubmit(broker.ResubmitOptions{Target: "other", BypassDuplicates: true}), moved([2]int64{2, 2}))
}

func testDLQ_22_PartitionOfTheTarget(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("other", detectsDuplicates, sharesKeys)
	part := func(partition, session string) *semantics.Message {
		return &semantics.Message{MessageID: "id", PartitionKey: partition, SessionID: session}
	}
	h.send(part("p", ""), part("q", ""), part("", "p"), part("", ""))
	h.deadLetter(h.receive(orders, 9)...)
	got := h.resubmit(broker.ResubmitOptions{Target: "other"}) // each separately, so partitions may differ
	h.same(got, []broker.ResubmitResult{
		moved([2]int64{1, 1})[0], moved([2]int64{2, 2})[0],
		{SequenceNumber: 3, Resubmitted: semantics.Resubmitted{Stored: duplicate(1)}},
		moved([2]int64{4, 3})[0],
	})
}

func testDLQ_22_CountOfTheTarget(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(3), detectsDuplicates, megabytes(1))
	h.send(text("a"), sized(mebibyte-100))
	h.deadLetter(h.receive(orders, 2)...)
	// now it is full to the last byte
	h.send(&semantics.Message{MessageID: "x", ScheduledAt: h.in(time.Hour), Body: make([]byte, 97)})
	// to the same queue bytes never stand in the way
	got := h.resubmit(broker.ResubmitOptions{NewMessageIDs: true, Numbers: []int64{2}})
	h.same(got, moved([2]int64{2, 4}))
	got = h.resubmit(broker.ResubmitOptions{NewMessageIDs: true})
	h.same(got, moved([2]int64{1, 5}))
	h.deadLetter(h.takeNumbers(orders, 5)...)
	h.update(holdsAtMost(2), "maxMessageCount")
	// scheduled ones count
	h.same(h.resubmit(broker.ResubmitOptions{BypassDuplicates: true}), []broker.ResubmitResult{notMoved(5, semantics.EntityFull)})
	h.ok(h.cancel(3))
	h.same(h.resubmit(broker.ResubmitOptions{BypassDuplicates: true}), moved([2]int64{5, 6}))
}

func testDLQ_22_ModifiedSizeOfTheTarget(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("other", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.send(sized(1024), sized(1024))
	got := h.receive(orders, 2)
	codes, err := h.modifiers(orders)["dead-letter"](properties{"p": semantics.Null()}, got[0])
	h.settled(codes, err)
	h.deadLetter(got[1]) // the texts are none of its size
	h.same(h.resubmit(broker.ResubmitOptions{Target: "other"}), []broker.ResubmitResult{
		notMoved(1, semantics.MessageSizeExceeded), moved([2]int64{2, 1})[0],
	})
	// As with a send, it does not matter that a message too large would be dropped as a duplicate.
	h.createNamed("remembering", detectsDuplicates, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	_, err = h.broker.Send(h.t.Context(), semantics.ToQueue("remembering"), []*semantics.Message{{MessageID: "sized"}})
	h.ok(err)
	h.same(h.resubmit(broker.ResubmitOptions{Target: "remembering"}), []broker.ResubmitResult{notMoved(1, semantics.MessageSizeExceeded)})
	h.wantNumbers(h.peek(deadOrders), 1)
}

func testSTAT_2_ResubmitReceivesAndSends(t *testing.T, h *fixture) {
	h.create()
	h.createNamed("other")
	h.deadLetterTexts("a", "b", "c")
	resubmit := func(target string) error {
		_, _, err := h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: target, Max: 1})
		return err
	}
	for _, status := range allStatuses[1:] {
		h.setStatus(status)
		before := h.runtime()
		h.wantCode(resubmit(""), semantics.EntityDisabled)
		h.same(h.runtime(), before)
	}
	h.wantCode(resubmit("other"), semantics.EntityDisabled) // it cannot be received from
	_, _, err := h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: "missing", Numbers: []int64{1}})
	h.wantCode(err, semantics.EntityDisabled) // PEEK looks first
	h.setStatus(semantics.StatusSendDisabled)
	h.ok(resubmit("other")) // but need not be sent to
	h.setStatus(semantics.StatusActive)
	for _, status := range allStatuses {
		_, err := h.Store.UpdateEntity(t.Context(), semantics.QueueKind, "other", semantics.Options{Status: status}, []string{"status"})
		h.ok(err)
		want := semantics.Code("")
		if !status.CanSend() {
			want = semantics.EntityDisabled
		}
		h.wantCode(resubmit("other"), want)
	}
	h.wantNumbers(h.peek(deadOrders))

	// The store says what is missing before what is disabled.
	h.setStatus(semantics.StatusDisabled)
	h.wantCode(h.resubmitInStore(deadOrders, "missing", 1), semantics.EntityNotFound)
}
