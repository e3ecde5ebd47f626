package storetest

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var partitionDuplicateTests = []ruleTest{
	testDUP_2_MessageIDChoosesThePartition,
	testDUP_2_KeyAndIDOverPartitions,
	testBATCH_4_IDsOfABatch,
	testPART_2_MessageIDBeforeRequestID,
	testPART_2_MadeIDsGoByRequestID,
	testPART_2_IDsKeepTheirPartitionWhenItIsFull,
	testPART_5_HistoryIsShared,
}

func testDUP_2_MessageIDChoosesThePartition(t *testing.T, h *fixture) {
	h.spread(16, detectsDuplicates)
	first, used := map[string]int64{}, map[int]bool{}
	for round, b := range []*broker.Broker{h.broker, h.peer(), h.peer()} {
		var calls [][]*semantics.Message
		for i := range 30 {
			calls = append(calls, []*semantics.Message{text(fmt.Sprint("id", i))})
		}
		results, errs := b.SendEach(t.Context(), semantics.ToQueue("orders"), calls)
		for i, one := range results {
			h.ok(errs[i])
			id := fmt.Sprint("id", i)
			if round == 0 {
				first[id] = one[0].SequenceNumber
				_, p := semantics.PartitionOf(one[0].SequenceNumber)
				used[p] = true
			}
			h.same(one[0].Stored, semantics.Stored{SequenceNumber: first[id], Deduplicated: round > 0})
		}
	}
	again, err := h.peer().Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("id7"), text("id7")})
	h.ok(err)
	h.same(again[0].Stored, duplicate(first["id7"]))
	h.same(again[1].Stored, duplicate(first["id7"]))
	h.wantCounts(30, 0, 0)
	if len(used) < 8 {
		t.Errorf("30 ids are in %d partitions", len(used))
	}
}

func testDUP_2_KeyAndIDOverPartitions(_ *testing.T, h *fixture) {
	h.spread(2, detectsDuplicates)
	sent := map[int64]bool{}
	for i := range 6 { // some of which share a partition
		m := keyed("id", fmt.Sprint(i))
		sent[h.send(m)] = true
		h.same(h.sendAll(keyed("id", fmt.Sprint(i)))[0].Deduplicated, true)
	}
	h.same(len(sent), 6)
	h.same(h.sendAll(text("id"))[0].Deduplicated, false)
	h.same(h.sendAll(text("id"))[0].Deduplicated, true)
	h.wantCounts(7, 0, 0)
	h.drop()
	h.spread(2, detectsDuplicates, hasSessions)
	for i := range 6 { // the session is the key
		h.send(part(fmt.Sprint(i), "id"))
		h.same(h.sendAll(part(fmt.Sprint(i), "id"), part(fmt.Sprint(i), "other"))[0].Deduplicated, true)
	}
	h.wantCounts(12, 0, 0)
}

func testBATCH_4_IDsOfABatch(t *testing.T, h *fixture) {
	h.spread(4, detectsDuplicates)
	h.refusedSend(semantics.PartitionKeyMismatch, text("a"), text("b"))
	h.refusedSend(semantics.PartitionKeyMismatch, text("a"), keyed("b", "a"))
	h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "1"), keyed("b", "2"))
	h.send(keyed("a", "k"), keyed("b", "k"))
	h.send(text("a"), text("a"))
	_, errs := h.broker.SendEach(t.Context(), semantics.ToQueue("orders"), [][]*semantics.Message{{text("c"), text("d")}, {text("c")}, {text("d")}})
	h.wantCode(errs[0], semantics.PartitionKeyMismatch)
	h.ok(errs[1])
	h.ok(errs[2])
	h.wantCounts(5, 0, 0)
}

// What was sent under a request id is found by its message id, too.
func testPART_2_MessageIDBeforeRequestID(_ *testing.T, h *fixture) {
	h.spread(16, detectsDuplicates)
	for i := range 10 {
		id, request := fmt.Sprint("id", i), fmt.Sprint("request", i)
		first := h.sendOnce(semantics.ToQueue("orders"), request, text(id))
		again := h.sendOnce(semantics.ToQueue("orders"), request, text(id))
		h.same(again.Results, first.Results)
		h.same(h.sendAll(text(id)), []semantics.Stored{duplicate(first.Results[0].SequenceNumber)})
		other := h.sendOnce(semantics.ToQueue("orders"), request+"b", text(id))
		h.same(other.Results[0].Stored, duplicate(first.Results[0].SequenceNumber))
	}
	h.wantCounts(10, 0, 0)
}

// The repeat of a message without an id has another one, and must find the first.
func testPART_2_MadeIDsGoByRequestID(t *testing.T, h *fixture) {
	h.spread(16, detectsDuplicates)
	for i := range 10 {
		request := fmt.Sprint("request", i)
		first := h.sendOnce(semantics.ToQueue("orders"), request, &semantics.Message{}, &semantics.Message{})
		again := h.sendOnce(semantics.ToQueue("orders"), request, &semantics.Message{}, &semantics.Message{})
		h.same(again.Results, first.Results)
	}
	_, _, err := h.broker.SendOnce(t.Context(), semantics.ToQueue("orders"), "mixed", []*semantics.Message{{}, text("a")})
	h.wantCode(err, semantics.PartitionKeyMismatch)
	h.wantCounts(20, 0, 0)
}

func testPART_2_IDsKeepTheirPartitionWhenItIsFull(_ *testing.T, h *fixture) {
	h.spread(2, detectsDuplicates, holdsAtMost(2))
	taken := map[int]bool{}
	for i := 0; len(taken) < 2; i++ {
		id := fmt.Sprint(i)
		results, err := h.Store.Send(h.t.Context(), "orders", []*semantics.Message{text(id)})
		if err != nil {
			h.wantCode(err, semantics.EntityFull)
			continue
		}
		_, p := semantics.PartitionOf(results[0].SequenceNumber)
		taken[p] = true
	}
	h.wantCounts(2, 0, 0)
}

func testPART_5_HistoryIsShared(_ *testing.T, h *fixture) {
	h.spread(2, detectsDuplicates, remembersAtMost(3)) // two in each partition
	for i := range 2 {
		h.send(keyed(fmt.Sprint(i), "key"))
	}
	h.refusedSend(semantics.QuotaExceeded, keyed("2", "key"))
	h.update(remembersAtMost(5), "duplicateHistoryMaxEntries")
	h.send(keyed("2", "key"))
	h.refusedSend(semantics.QuotaExceeded, keyed("3", "key"))
}
