package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Dead letters of queues with several partitions are sent again, and go to such queues (DLQ-22, PART-5).
var partitionResubmitTests = []ruleTest{
	testDLQ_22_BackToItsPartition,
	testDLQ_22_NumbersOfSeveralPartitions,
	testDLQ_22_PagesOfSeveralPartitions,
	testDLQ_22_ADeadLetterAgainDuringTheCall,
	testDLQ_22_FromPartitionsToAQueue,
	testDLQ_22_FromPartitionsToATopic,
	testDLQ_22_FromAQueueToPartitions,
	testDLQ_22_RefusedByOnePartition,
	testDLQ_22_BetweenPartitionsDiesAfterAnyStep,
	testDLQ_22_UndeliveredOfPartitions,
}

// deadLetterKeyed sends messages with several keys to orders, makes all dead letters, and returns their ids by key.
func (h *fixture) deadLetterKeyed(n int) map[string][]string {
	h.t.Helper()
	ids := h.sendKeyed(orders, n)
	h.deadLetter(h.receive(orders, 1000)...)
	return ids
}

// took checks that the target took each letter, and returns the numbers of the letters and those of the new messages.
func (h *fixture) took(results []broker.ResubmitResult) (letters, numbers []int64) {
	h.t.Helper()
	for _, r := range results {
		h.same(r.Code, semantics.Code(""))
		letters, numbers = append(letters, r.SequenceNumber), append(numbers, r.Resubmitted.SequenceNumber)
	}
	return letters, numbers
}

func testDLQ_22_BackToItsPartition(_ *testing.T, h *fixture) {
	h.spread(4)
	want := h.deadLetterKeyed(20)
	h.send(text("without"))
	h.deadLetter(h.receive(orders, 1)...)
	want[""] = []string{"without"}
	letters := numbersOf(h.peekFrom(deadOrders, 1, 100))
	results := h.resubmit(broker.ResubmitOptions{})
	from, numbers := h.took(results)
	h.same(from, letters)
	rows := h.wantByKey(orders, want)
	h.same(slices.Sorted(slices.Values(numbers)), numbersOf(rows))
	for i, number := range numbers {
		_, before := semantics.PartitionOf(from[i])
		_, p := semantics.PartitionOf(number)
		h.same(p, before)
	}
	h.same(h.counts(), semantics.Runtime{Active: 21, Available: 21})
}

func testDLQ_22_NumbersOfSeveralPartitions(_ *testing.T, h *fixture) {
	h.spread(3)
	h.createNamed(archive.Path)
	for _, target := range []string{"", archive.Path} {
		h.deadLetterKeyed(12)
		letters := numbersOf(h.peekFrom(deadOrders, 1, 100))
		slices.Reverse(letters)
		some := append([]int64{semantics.InPartition(7, 9)}, letters[:8]...)
		some = append(some, semantics.InPartition(999, 1), semantics.InPartition(1, 3))
		results := h.resubmit(broker.ResubmitOptions{Numbers: some, Target: target})
		missing := semantics.MessageNotFound
		h.same([]broker.ResubmitResult{results[0], results[9], results[10]}, []broker.ResubmitResult{notMoved(some[0], missing), notMoved(some[9], missing), notMoved(some[10], missing)})
		from, _ := h.took(results[1:9])
		h.same(from, letters[:8])
		h.same(h.counts().DeadLetter, int64(4))
		h.resubmit(broker.ResubmitOptions{Target: archive.Path})
		h.purge(orders, broker.PurgeOptions{Before: h.in(time.Second)})
	}
	h.same(h.countsOf(archive).Active, int64(4+12))
}

func testDLQ_22_PagesOfSeveralPartitions(_ *testing.T, h *fixture) {
	h.spread(3)
	h.createNamed(archive.Path, partitions(2))
	for _, target := range []string{"", archive.Path} {
		h.sendTexts(150)
		h.sendTexts(150)
		h.sendTexts(150)
		for range 3 {
			h.deadLetter(h.receive(orders, 150)...)
		}
		results, more, err := h.broker.Resubmit(h.t.Context(), deadOrders, broker.ResubmitOptions{Max: 200, Target: target})
		h.ok(err)
		h.same([]any{len(results), more}, []any{200, true})
		results, more, err = h.broker.Resubmit(h.t.Context(), deadOrders, broker.ResubmitOptions{Target: target})
		h.ok(err)
		h.same([]any{len(results), more}, []any{250, false})
		h.same(h.counts().DeadLetter, int64(0))
		h.purge(orders, broker.PurgeOptions{Before: h.in(time.Second)})
	}
	h.same(h.countsOf(archive).Active, int64(450))
}

// What the call has sent again and becomes a dead letter at once is not sent again by the same call, in any partition.
func testDLQ_22_ADeadLetterAgainDuringTheCall(t *testing.T, h *fixture) {
	h.spread(3)
	h.sendTexts(60)
	h.sendTexts(60)
	h.sendTexts(60)
	for range 2 {
		h.deadLetter(h.receive(orders, 90)...)
	}
	looks := 0
	options := broker.ResubmitOptions{Matches: func(*semantics.Received) (bool, error) {
		if looks++; looks > 1000 {
			t.Fatal("it does not end")
		}
		if got := h.receive(orders, 100); len(got) > 0 {
			h.deadLetter(got...)
		}
		return true, nil
	}}
	h.took(h.resubmit(options))
	h.same(h.counts().Active+h.counts().DeadLetter, int64(180))
	h.same(looks, 180)
}

func testDLQ_22_FromPartitionsToAQueue(_ *testing.T, h *fixture) {
	h.spread(4)
	h.createNamed(archive.Path)
	want := h.deadLetterKeyed(20)
	letters := numbersOf(h.peekFrom(deadOrders, 1, 100))
	from, numbers := h.took(h.resubmit(broker.ResubmitOptions{Target: archive.Path}))
	h.same(from, letters)
	rows := h.wantByKey(archive, want)
	h.same(slices.Sorted(slices.Values(numbers)), numbersOf(rows))
	for _, m := range rows {
		h.same(m.EnqueuedSequenceNumber, m.SequenceNumber)
		h.same(m.Forwarded == nil, true)
	}
	h.same(h.counts(), semantics.Runtime{})
}

func testDLQ_22_FromPartitionsToATopic(_ *testing.T, h *fixture) {
	h.spread(3)
	h.createTopic()
	h.createSubscription(eu)
	want := h.deadLetterKeyed(15)
	h.took(h.resubmit(broker.ResubmitOptions{Target: "news", TargetIsTopic: true}))
	h.wantByKey(eu, want)
	h.same(h.counts(), semantics.Runtime{})
}

func testDLQ_22_FromAQueueToPartitions(_ *testing.T, h *fixture) {
	h.overPartitions()
	h.create()
	h.createNamed(archive.Path, partitions(4))
	want := h.deadLetterKeyed(20)
	_, numbers := h.took(h.resubmit(broker.ResubmitOptions{Target: archive.Path}))
	rows := h.wantByKey(archive, want)
	h.same(slices.Sorted(slices.Values(numbers)), numbersOf(rows))
	h.deadLetterTexts("a", "b", "c", "d")
	_, numbers = h.took(h.resubmit(broker.ResubmitOptions{Target: archive.Path, NewMessageIDs: true}))
	h.same(len(numbers), 4)
	for _, m := range h.peekFrom(archive, 1, 100)[:24] {
		h.same(slices.Contains([]string{"a", "b", "c", "d"}, m.MessageID), false)
	}
	h.same(h.counts(), semantics.Runtime{})
}

func testDLQ_22_RefusedByOnePartition(_ *testing.T, h *fixture) {
	h.overPartitions()
	h.createNamed(archive.Path, partitions(2), holdsAtMost(10))
	h.create(partitions(3))
	full, other := h.fillShare(5)
	h.send(keyed("no", full))
	h.send(keyed("yes", other))
	h.deadLetter(h.receive(orders, 10)...)
	codes := map[string]semantics.Code{}
	for _, m := range h.peekFrom(deadOrders, 1, 10) {
		results := h.resubmit(broker.ResubmitOptions{Target: archive.Path, Numbers: []int64{m.SequenceNumber}})
		codes[m.MessageID] = results[0].Code
	}
	h.same(codes, map[string]semantics.Code{"no": semantics.EntityFull, "yes": ""})
	h.wantIDs(deadOrders, "no")
	h.updateNamed(archive, hasStatus(semantics.StatusSendDisabled), "status")
	_, _, err := h.broker.Resubmit(h.t.Context(), deadOrders, broker.ResubmitOptions{Target: archive.Path})
	h.wantCode(err, semantics.EntityDisabled)
}

func testDLQ_22_BetweenPartitionsDiesAfterAnyStep(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(3))
	h.create(partitions(2))
	options := broker.ResubmitOptions{Target: archive.Path, NewMessageIDs: true}
	h.untilItLives(6, func(steps int, after bool) bool {
		want := h.deadLetterKeyed(15)
		mortal := h.newBroker(partitioned.New(&dyingBelow{Below: below, left: steps, after: after}))
		results, more, err := mortal.Resubmit(t.Context(), deadOrders, options)
		h.took(results)
		// the letters of a transfer that is under way are not seen until some call finishes it
		h.ok(third(h.peer().Resubmit(t.Context(), deadOrders, options)))
		h.same(h.counts(), semantics.Runtime{})
		h.wantCountsByKey(archive, want)
		h.complete(archive, h.receive(archive, 100)...)
		return err != nil || more
	})
}

// wantCountsByKey checks how many messages a source has of each key.
func (h *fixture) wantCountsByKey(source semantics.Source, want map[string][]string) {
	h.t.Helper()
	got, counts := map[string]int{}, map[string]int{}
	for _, m := range h.peekFrom(source, 1, broker.MaxPeekMessages) {
		got[m.PartitionKey]++
	}
	for key, ids := range want {
		counts[key] = len(ids)
	}
	h.same(got, counts)
}

// Transfer dead letters of a queue with several partitions return to it, and are forwarded again.
func testDLQ_22_UndeliveredOfPartitions(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	h.createNamed(archive.Path, partitions(2))
	h.create(partitions(3), forwardsTo(archive.Path))
	h.updateNamed(archive, hasStatus(semantics.StatusSendDisabled), "status")
	want := h.sendKeyed(orders, 15)
	h.sweepPartitions(below)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 15})
	h.updateNamed(archive, hasStatus(semantics.StatusActive), "status")
	results, _, err := h.broker.Resubmit(t.Context(), undelivered(orders), broker.ResubmitOptions{})
	h.ok(err)
	if h.took(results); len(results) != 15 {
		t.Fatal(fmt.Sprint("resubmitted ", len(results)))
	}
	h.sweepPartitions(below)
	h.wantByKey(archive, want)
	h.same(h.counts(), semantics.Runtime{})
}
