package storetest

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

func testPART_2_AKeyHasItsPartition(t *testing.T, h *fixture) {
	h.spread(16)
	used := map[int]bool{}
	for i := range 20 {
		key := fmt.Sprint("key", i)
		for round, b := range []*broker.Broker{h.broker, h.peer(), h.broker} {
			m := keyed(fmt.Sprintf("%s-%d", key, round), key)
			_, err := b.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{m})
			h.ok(err)
		}
	}
	of := map[string]int{}
	next := map[string]int{}
	for _, m := range h.peekFrom(orders, 1, 250) {
		p, known := of[m.PartitionKey]
		if known && p != partitionOf(m) {
			t.Fatalf("%s is in partition %d and %d", m.PartitionKey, p, partitionOf(m))
		}
		of[m.PartitionKey], used[partitionOf(m)] = partitionOf(m), true
		h.same(m.MessageID, fmt.Sprintf("%s-%d", m.PartitionKey, next[m.PartitionKey]))
		next[m.PartitionKey]++
	}
	if len(of) != 20 || len(used) < 8 {
		t.Fatalf("%d keys in %d partitions", len(of), len(used))
	}
	// where a key is must never change
	h.same([]int{of["key0"], of["key1"], of["key2"]}, []int{4, 7, 10})
}

func testPART_2_WithoutKeyInTurn(t *testing.T, h *fixture) {
	h.spread(4)
	for range 8 {
		h.sendTexts(3) // a batch stays together
	}
	count := map[int]int{}
	for _, m := range h.peek(orders) {
		count[partitionOf(m)]++
	}
	h.same(count, map[int]int{0: 6, 1: 6, 2: 6, 3: 6})
}

func testPART_6_ABatchStaysTogether(t *testing.T, h *fixture) {
	h.spread(4)
	used := map[int]bool{}
	for range 4 {
		batch := make([]*semantics.Message, 50)
		for i := range batch {
			batch[i] = text(fmt.Sprint(i))
		}
		results, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), batch)
		h.ok(err)
		for i, r := range results {
			h.same(r.SequenceNumber, results[0].SequenceNumber+int64(i))
		}
		_, p := semantics.PartitionOf(results[0].SequenceNumber)
		used[p] = true
	}
	h.same(len(used), 4)
	h.refusedSend(semantics.PartitionKeyMismatch, text("a"), keyed("b", "key"))
	mixed := h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "key"), keyed("b", "key"), keyed("c", "other"))
	h.same(mixed.Details[semantics.DetailIndex], "2")
	h.wantCounts(200, 0, 0)
}

func testPART_2_AnotherPartitionWhenOneIsFull(t *testing.T, h *fixture) {
	h.spread(3, holdsAtMost(6))
	for range 2 {
		h.send(keyed("k", "key"))
	}
	h.refusedSend(semantics.EntityFull, keyed("k", "key"))
	for range 4 {
		h.send(text("a"))
	}
	h.refusedSend(semantics.EntityFull, text("a"))
	h.wantCounts(6, 0, 0)
}

func testPART_2_RequestIDWithoutKey(t *testing.T, h *fixture) {
	h.spread(8)
	first := h.sendOnce(semantics.ToQueue("orders"), "r1", text("a"))
	for range 8 {
		again := h.sendOnce(semantics.ToQueue("orders"), "r1", text("a"))
		h.same(again.Results, first.Results)
	}
	h.wantCounts(1, 0, 0)
}

func testPART_2_SendEachKeepsOrderOfAKey(t *testing.T, h *fixture) {
	h.spread(4)
	var calls [][]*semantics.Message
	for i := range 40 {
		calls = append(calls, []*semantics.Message{keyed(fmt.Sprintf("%02d", i), fmt.Sprint("k", i%4))})
	}
	calls = append(calls, []*semantics.Message{keyed("x", "a"), keyed("y", "b")}, []*semantics.Message{text("z")})
	results, errs := h.broker.SendEach(t.Context(), semantics.ToQueue("orders"), calls)
	for i := range 40 {
		h.ok(errs[i])
		h.same(results[i][0].MessageID, fmt.Sprintf("%02d", i))
	}
	h.wantCode(errs[40], semantics.PartitionKeyMismatch)
	h.ok(errs[41])
	last := map[string]string{}
	for _, m := range h.peekFrom(orders, 1, 100) {
		if m.MessageID <= last[m.PartitionKey] {
			t.Fatalf("%s comes behind %s", m.MessageID, last[m.PartitionKey])
		}
		last[m.PartitionKey] = m.MessageID
	}
}

func testPART_3_SequenceNumbers(t *testing.T, h *fixture) {
	h.spread(2)
	sent := map[int64]bool{}
	for range 4 {
		results, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("a"), text("b")})
		h.ok(err)
		h.same(results[1].SequenceNumber, results[0].SequenceNumber+1)
		sent[results[0].SequenceNumber], sent[results[1].SequenceNumber] = true, true
	}
	for _, n := range []int64{1, 2, 3, 4} {
		if !sent[n] || !sent[n|1<<48] {
			t.Fatalf("the numbers are %v, want 1 to 4 in each of two partitions", sent)
		}
	}
	for _, m := range h.receive(orders, 8) {
		if !sent[m.SequenceNumber] || m.EnqueuedSequenceNumber != m.SequenceNumber {
			t.Fatalf("received %d (%d)", m.SequenceNumber, m.EnqueuedSequenceNumber)
		}
	}
}

func testBATCH_4_OnePartitionKey(_ *testing.T, h *fixture) {
	h.spread(4)
	h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "1"), keyed("b", "2"))
	h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "1"), text("b"))
	h.send(keyed("a", "1"), keyed("b", "1"))
	h.wantCounts(2, 0, 0)
}
