package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var partitionTopicUseTests = []ruleTest{
	testPART_8_SessionsOfASubscription,
	testPART_8_DuplicatesOfATopic,
	testPART_8_TransactionsOnATopic,
	testTX_8_ATopicAndItsSubscriptionShareAPartition,
	testPART_8_TransactionsInSeveralPartitionsAreRefused,
	testPART_8_ListAndStatesOfSessions,
	testPART_8_PurgeOfASubscription,
	testPART_8_ResubmittedToTheSubscription,
	testPART_8_ResubmittedToAQueue,
}

// A session of a subscription lies in one partition, by its id.
func testPART_8_SessionsOfASubscription(t *testing.T, h *fixture) {
	h.spreadNews(3)
	tales := subscription("tales")
	h.createSubscription(tales, func(o *semantics.Options) { o.RequiresSession = true })
	for i := range 4 {
		for _, session := range []string{"a", "b", "c", "d", "e"} {
			m := text(fmt.Sprint(session, i))
			m.SessionID = session
			h.publish(m)
		}
	}
	seen := map[string]bool{}
	for range 5 {
		a, err := h.peer().AcceptSession(t.Context(), tales.Path, broker.AcceptOptions{})
		h.ok(err)
		id := a.Session.ID
		h.same(seen[id], false)
		seen[id] = true
		messages := h.receive(a.Source(), 10)
		h.same(messageIDs(messages), []string{id + "0", id + "1", id + "2", id + "3"})
		h.complete(a.Source(), messages...)
	}
	h.publish(text("none")) // a dead letter there, as it has no session
	h.same(messageIDs(h.peek(deadOf(tales))), []string{"none"})
	h.wantOfAll(us, 1, "a0", "b0", "c0", "d0", "e0", "a1", "b1", "c1", "d1", "e1", "a2", "b2", "c2", "d2", "e2", "a3", "b3", "c3", "d3", "e3", "none")
}

// Messages with one id are in one partition, which remembers it.
func testPART_8_DuplicatesOfATopic(_ *testing.T, h *fixture) {
	h.spreadNews(4, func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
	var want []string
	for i := range 8 {
		id := fmt.Sprint(i)
		first := h.publish(text(id))[0]
		again := h.publishBy(h.peer(), text(id))[0]
		h.same(again, semantics.Stored{SequenceNumber: first.SequenceNumber, Deduplicated: true})
		want = append(want, id)
	}
	h.wantOfAll(eu, 1, want...)
}

// A transaction sends to the partition of the key, where the topic takes a message as if it was due now (TX-13), and
// settles what its subscription has there.
func testPART_8_TransactionsOnATopic(t *testing.T, h *fixture) {
	h.spreadNews(3)
	h.publish(keyed("a", "k"))
	got := h.receiveOne(eu)
	_, err := h.broker.Transact(t.Context(), nil, []semantics.Operation{
		{Source: semantics.Source{Path: news}, IsTopic: true, Messages: []*semantics.Message{keyed("b", "k")}},
		{Verb: semantics.OperationComplete, Source: eu, Tokens: tokensOf(got)},
	})
	h.ok(err)
	h.activate()
	h.wantOfAll(eu, 1, "b")
	h.wantOfAll(us, 1, "a", "b")
}

// A message without a key goes where the transaction settles in a subscription of the topic: in another partition, which
// may be on another server, both could not be done together (TX-7).
func testTX_8_ATopicAndItsSubscriptionShareAPartition(t *testing.T, h *fixture) {
	h.spreadNews(8)
	for i := range 4 {
		h.publish(keyed(fmt.Sprint(i), fmt.Sprint("k", i)))
	}
	for _, m := range h.receive(eu, 4) {
		result, err := h.broker.Transact(t.Context(), nil, []semantics.Operation{publishes(text("next")), completes(eu, m)})
		h.ok(err)
		_, p := semantics.PartitionOf(result.Results[0].Sent[0].SequenceNumber)
		h.same(p, partitionOf(m))
	}
}

// A sidecar that knows nothing of the topic refuses them too.
func testPART_8_TransactionsInSeveralPartitionsAreRefused(t *testing.T, h *fixture) {
	h.spreadNews(4)
	got := map[int]*semantics.Received{} // by partition
	for i := range 20 {
		h.publish(keyed(fmt.Sprint(i), fmt.Sprint("k", i)))
	}
	for _, m := range h.receive(eu, 20) {
		got[partitionOf(m)] = m
	}
	toNews := func(key string) semantics.Operation {
		return semantics.Operation{Source: semantics.Source{Path: news}, IsTopic: true, Messages: []*semantics.Message{keyed("b", key)}}
	}
	for _, operations := range [][]semantics.Operation{
		{toNews("k1"), toNews("k2")},
		{completes(eu, got[0]), completes(eu, got[1])},
	} {
		for _, b := range []*broker.Broker{h.broker, h.peer()} {
			_, err := b.Transact(t.Context(), nil, operations)
			h.wantCode(err, semantics.PartitionKeyMismatch)
		}
	}
	h.activate()
	h.same([]int64{h.runtimeOf(eu).Total(), h.runtimeOf(us).Total()}, []int64{20, 20})
	_, err := h.peer().Transact(t.Context(), nil, []semantics.Operation{completes(eu, got[1])})
	h.ok(err)
	h.same(h.runtimeOf(eu).Total(), int64(19))
}

func testPART_8_ListAndStatesOfSessions(t *testing.T, h *fixture) {
	h.spreadNews(3)
	tales := subscription("tales")
	h.createSubscription(tales, hasSessions)
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("s%02d", i)
		h.publish(part(id, "a"), part(id, "b"))
		want = append(want, id)
	}
	for _, b := range []*broker.Broker{h.broker, h.peer()} {
		rows, _, err := b.ListSessions(t.Context(), tales.Path, 100, "", semantics.SessionFilter{})
		h.ok(err)
		h.same(idsOf(rows), want)
	}
	held := h.acceptOf(tales, "s05")
	_, err := h.broker.SetSessionState(t.Context(), held, []byte("x"), nil)
	h.ok(err)
	messages := h.receive(held, 2)
	h.setAside(held, messages[0])
	h.deadLetterFrom(held, messages[1])
	h.complete(held, h.takeDeferred(held, messages[0].SequenceNumber)...)
	h.ok(h.broker.CloseSession(t.Context(), held))
	state, err := h.peer().SessionState(t.Context(), h.acceptOf(tales, "s05"))
	h.ok(err)
	h.same(string(state.Data), "x")
	counts := h.runtimeOf(tales)
	h.same([]int64{counts.Active, counts.DeadLetter}, []int64{22, 1})
}

func testPART_8_PurgeOfASubscription(_ *testing.T, h *fixture) {
	h.spreadNews(3)
	for range 9 {
		h.publish(text("a"))
	}
	h.deadLetterFrom(eu, h.receive(eu, 4)...)
	h.Advance(ms)
	h.same(h.purge(deadEU, broker.PurgeOptions{Before: h.Now()}), int64(4))
	h.same(h.purge(eu, broker.PurgeOptions{Before: h.Now()}), int64(5))
	h.same([]int64{h.runtimeOf(eu).Total(), h.runtimeOf(us).Active}, []int64{0, 9})
}

// deadLetterNews makes dead letters in eu, with keys in several partitions, and returns their ids.
func (h *fixture) deadLetterNews(n int) (ids []string) {
	h.t.Helper()
	for i := range n {
		h.publish(keyed(fmt.Sprint(i), fmt.Sprint("k", i)))
		ids = append(ids, fmt.Sprint(i))
	}
	h.deadLetterFrom(eu, h.receive(eu, n)...)
	h.same(h.runtimeOf(eu).DeadLetter, int64(n))
	slices.Sort(ids)
	return ids
}

// A dead letter goes back to its subscription, in its partition, and to no other one.
func testPART_8_ResubmittedToTheSubscription(t *testing.T, h *fixture) {
	h.spreadNews(4)
	ids := h.deadLetterNews(12)
	letters := h.peekFrom(deadEU, 1, 100)
	results, more, err := h.peer().Resubmit(t.Context(), deadEU, broker.ResubmitOptions{})
	h.ok(err)
	h.same(more, false)
	from, numbers := h.took(results)
	h.same(from, numbersOf(letters))
	for i := range numbers {
		_, before := semantics.PartitionOf(from[i])
		_, p := semantics.PartitionOf(numbers[i])
		h.same(p, before)
	}
	h.same(h.runtimeOf(us).Active, int64(12))
	h.wantOfAll(eu, 1, ids...)
}

func testPART_8_ResubmittedToAQueue(t *testing.T, h *fixture) {
	h.spreadNews(4)
	for i, n := range []int64{1, 3} {
		path := fmt.Sprint("queue", i)
		h.createNamed(path, partitions(n))
		ids := h.deadLetterNews(12)
		results, _, err := h.broker.Resubmit(t.Context(), deadEU, broker.ResubmitOptions{Target: path})
		h.ok(err)
		h.took(results)
		h.same(h.runtimeOf(eu).Total(), int64(0))
		h.wantHidden(h.peek(semantics.Source{Path: path})...)
		h.wantOfAll(semantics.Source{Path: path}, 1, ids...)
	}
}
