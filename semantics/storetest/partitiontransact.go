package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Transactions on queues with several partitions: each uses one of them (TX-8).
var partitionTransactTests = []ruleTest{
	testTX_8_EveryVerbInOnePartition,
	testTX_8_SeveralPartitionsAreRefused,
	testTX_8_WithoutAKey,
	testTX_8_RefusalsNameTheQueue,
	testTX_8_SidecarThatKnowsNothing,
	testTX_8_MissingPartition,
	testTX_12_RepeatFindsThePartition,
	testTX_1_CommitInAPartition,
	testTX_8_SessionOfAPartition,
	testTX_8_MessageIDsAreKeys,
}

// partitionOfKey returns the partition of a key in a queue, to which it sends a message.
func (h *fixture) partitionOfKey(queue semantics.Source, key string) int {
	h.t.Helper()
	sent, err := h.broker.Send(h.t.Context(), semantics.ToQueue(queue.Path), []*semantics.Message{keyed("of "+key, key)})
	h.ok(err)
	_, p := semantics.PartitionOf(sent[0].SequenceNumber)
	return p
}

// apartKeys returns two keys of different partitions of orders, each of which has one message.
func (h *fixture) apartKeys() (one, other string) {
	h.t.Helper()
	first := h.partitionOfKey(orders, "k0")
	for i := 1; ; i++ {
		key := fmt.Sprint("k", i)
		if h.partitionOfKey(orders, key) != first {
			return "k0", key
		}
	}
}

// receiveKey receives until it has a message of a key, and releases the others.
func (h *fixture) receiveKey(key string) *semantics.Received {
	h.t.Helper()
	var found *semantics.Received
	var others []*semantics.Received
	for _, m := range h.receive(orders, 100) {
		if m.PartitionKey == key && found == nil {
			found = m
		} else {
			others = append(others, m)
		}
	}
	if found == nil {
		h.t.Fatalf("no received message has the key %s", key)
	}
	if len(others) > 0 {
		h.release(orders, others...)
	}
	return found
}

func testTX_8_EveryVerbInOnePartition(_ *testing.T, h *fixture) {
	h.spread(4)
	p := h.partitionOfKey(orders, "k0")
	for range 3 {
		h.send(keyed("more", "k0"))
	}
	got := h.receive(orders, 10)
	h.same(len(got), 4)
	later := keyed("later", "k0")
	later.ScheduledAt = h.in(lock)
	scheduled := h.send(later)
	results := h.transact(
		completes(orders, got[0]), ends(semantics.OperationAbandon, orders, got[1]),
		ends(semantics.OperationDefer, orders, got[2]), ends(semantics.OperationDeadLetter, orders, got[3]),
		cancels("ORDERS", scheduled), sends(orders.Path, keyed("a", "k0"), keyed("b", "k0")), sends("Orders", text("without")),
	)
	h.same(h.counts(), semantics.Runtime{Active: 5, Available: 4, Deferred: 1, DeadLetter: 1})
	sent := append(sentBy(results[5]), sentBy(results[6])...)
	for i, id := range []string{"a", "b", "without"} {
		rows := h.peekFrom(orders, sent[i], 1)
		h.same([]any{rows[0].MessageID, rows[0].SequenceNumber, partitionOf(rows[0])}, []any{id, sent[i], p})
	}
	h.transact(completes(deadOrders, h.receiveOne(deadOrders)), sends(orders.Path, keyed("c", "k0")))
	h.same(h.counts().DeadLetter, int64(0))
}

func testTX_8_SeveralPartitionsAreRefused(_ *testing.T, h *fixture) {
	h.spread(4)
	one, other := h.apartKeys()
	later := keyed("later", other)
	later.ScheduledAt = h.in(lock)
	scheduled := h.send(later)
	got, far := h.receiveKey(one), h.receiveKey(other)
	mismatch := semantics.PartitionKeyMismatch
	for _, operations := range [][]semantics.Operation{
		{sends(orders.Path, keyed("a", one)), sends("ORDERS", keyed("b", other))},
		{completes(orders, got), sends(orders.Path, keyed("a", other))},
		{sends(orders.Path, keyed("a", other)), completes(orders, got)},
		{completes(orders, got), completes(orders, far)},
		{completes(orders, got), cancels(orders.Path, scheduled)},
	} {
		e := h.refusedTransaction(mismatch, 1, operations...)
		h.same(e.Details[semantics.DetailEntity], "orders")
	}
	h.refusedTransaction(mismatch, 0, sends(orders.Path, keyed("a", one), keyed("b", other)))
	h.refusedTransaction(mismatch, 0, completes(orders, got, far))
	h.refusedTransaction(mismatch, 0, sends(orders.Path, keyed("a", one), text("without"))) // as in a batch (BATCH-4)
	same := ""
	for i := 0; same == ""; i++ { // one key, not one partition: what is refused must not depend on their number
		if key := fmt.Sprint("s", i); h.partitionOfKey(orders, key) == partitionOf(got) {
			same = key
		}
	}
	h.refusedTransaction(mismatch, 1, sends(orders.Path, keyed("a", one)), sends(orders.Path, keyed("b", same)))
	h.transact(completes(orders, got), sends(orders.Path, keyed("b", same)))
}

// Without anything that names a partition all goes to one, under a request id to one that a repeat finds.
func testTX_8_WithoutAKey(t *testing.T, h *fixture) {
	h.spread(4)
	used := map[int]bool{}
	for i := range 8 {
		results := h.transact(sends(orders.Path, text("a")), sends(orders.Path, text("b")))
		_, a := semantics.PartitionOf(sentBy(results[0])[0])
		_, b := semantics.PartitionOf(sentBy(results[1])[0])
		h.same(a, b)
		used[a] = true
		id := fmt.Sprint("r", i)
		operations := []semantics.Operation{sends(orders.Path, text("a")), sends(orders.Path, text("b"))}
		first := h.transactOnce(h.broker, id, operations...)
		again := h.transactOnce(h.peer(), id, operations...)
		h.same([]any{first.Repeated, again.Repeated}, []any{false, true})
		h.same(again.Results, first.Results)
	}
	h.same(len(used), 4)
	h.same(h.counts().Active, int64(32))
}

func testTX_8_RefusalsNameTheQueue(_ *testing.T, h *fixture) {
	h.spread(3, holdsAtMost(3))
	p := h.partitionOfKey(orders, "k0")
	h.Advance(2 * lock)
	got := h.receiveKey("k0")
	missing := semantics.InPartition(77, p)
	e := h.refusedTransaction(semantics.MessageNotFound, 1, completes(orders, got), cancels(orders.Path, missing))
	numbers, _ := semantics.NumbersOf(e)
	h.same(numbers, []int64{missing})
	far := semantics.InPartition(5, 9)
	e = h.refusedTransaction(semantics.MessageNotFound, 0, cancels(orders.Path, far))
	numbers, _ = semantics.NumbersOf(e)
	h.same(numbers, []int64{far})
	e = h.refusedTransaction(semantics.EntityFull, 1, completes(orders, got), sends(orders.Path, keyed("a", "k0")))
	h.same(e.Details[semantics.DetailEntity], "orders")
	foreign := completes(orders, got)
	foreign.Tokens = append(foreign.Tokens, semantics.NewLockToken().InPartition(semantics.MaxPartitions-1))
	e = h.refusedTransaction(semantics.MessageLockLost, 0, foreign)
	h.same(e.Details[semantics.DetailIndex], "1")
	h.Advance(2 * lock)
	e = h.refusedTransaction(semantics.MessageLockLost, 0, completes(orders, got))
	if strings.Contains(e.Error(), "#") || e.Details[semantics.DetailEntity] != "orders" {
		h.t.Errorf("it names a partition: %v, %v", e, e.Details)
	}
}

func testTX_8_SidecarThatKnowsNothing(t *testing.T, h *fixture) {
	h.spread(4)
	_ = h.partitionOfKey(orders, "k0")
	got := h.receiveKey("k0")
	operations := []semantics.Operation{completes(orders, got), sends(orders.Path, keyed("a", "k0"))}
	result, err := h.peer().Transact(t.Context(), nil, operations)
	h.ok(err)
	h.wantIDs(orders, "a")
	h.wantNumbers(h.peek(orders), sentBy(result.Results[1])...)
	_, err = h.peer().Transact(t.Context(), nil, []semantics.Operation{sends("nowhere", text("a"))})
	h.same(h.wantCode(err, semantics.EntityNotFound).Details[semantics.DetailOperation], "0")
}

func testTX_8_MissingPartition(t *testing.T, h *fixture) {
	below := h.below()
	h.spread(3)
	for p := range 3 {
		h.ok(below.DeleteEntity(t.Context(), semantics.QueueKind, h.Store.(*partitioned.Store).Path("orders", p)))
	}
	h.transact(sends(orders.Path, keyed("a", "k0")))
	h.wantIDs(orders, "a")
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	_, err := h.broker.Transact(t.Context(), nil, []semantics.Operation{sends(orders.Path, keyed("a", "k0"))})
	h.wantCode(err, semantics.EntityNotFound)
}

// inThreeQueues returns operations on two queues with several partitions, each with one, and on a plain one.
func (h *fixture) inThreeQueues() []semantics.Operation {
	h.t.Helper()
	h.spread(3)
	h.createNamed(archive.Path, partitions(2))
	h.createNamed("plain")
	_ = h.partitionOfKey(orders, "k0")
	return []semantics.Operation{
		sends("plain", text("x")), completes(orders, h.receiveKey("k0")), sends(archive.Path, keyed("a", "k1")),
		sends(orders.Path, keyed("b", "k0")), sends(archive.Path, text("c")),
	}
}

// On one Redis several queues take part, each with one partition.
func testTX_8_SeveralQueues(_ *testing.T, h *fixture) {
	results := h.transact(h.inThreeQueues()...)
	h.wantIDs(semantics.Source{Path: "plain"}, "x")
	h.wantIDs(archive, "a", "c")
	h.wantIDs(orders, "b")
	h.wantNumbers(h.peek(archive), append(sentBy(results[2]), sentBy(results[4])...)...)
}

// On a cluster only what shares a slot does.
func testTX_8_QueuesApart(t *testing.T, h *fixture) {
	operations := h.inThreeQueues()
	_, err := h.broker.Transact(t.Context(), nil, operations)
	if e := h.wantCode(err, semantics.InvalidOperation); strings.Contains(e.Error(), "#") {
		t.Errorf("it names a partition: %v", e)
	}
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1})
	h.transact(operations[1], operations[3])
	h.wantIDs(orders, "b")
}

// answerless is a Store whose transactions run and lose their answer.
type answerless struct {
	partitioned.Below
	lost int // how many more
}

func (a *answerless) Transact(ctx context.Context, once *semantics.Once, operations []semantics.Operation) semantics.TransactionOutcome {
	outcome := a.Below.Transact(ctx, once, operations)
	if outcome.Err == nil && a.lost > 0 {
		a.lost--
		return semantics.TransactionOutcome{Err: errFailing}
	}
	return outcome
}

func testTX_12_RepeatFindsThePartition(t *testing.T, h *fixture) {
	below := &answerless{Below: h.below()}
	h.spread(4)
	losing := h.newBroker(partitioned.New(below))
	for i := range 6 {
		_ = h.partitionOfKey(orders, fmt.Sprint("k", i))
		got := h.receiveOne(orders)
		below.lost = 1
		operations := []semantics.Operation{completes(orders, got), sends(orders.Path, text("reply"))}
		id := fmt.Sprint("r", i)
		_, err := losing.Transact(t.Context(), &id, operations)
		if !semantics.IsOutcomeUnknown(err) || strings.Contains(err.Error(), "#") {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		h.same(h.transactOnce(h.peer(), id, operations...).Repeated, true)
		reply := h.receiveOne(orders)
		h.same([]any{reply.MessageID, partitionOf(reply)}, []any{"reply", partitionOf(got)})
		h.complete(orders, reply)
		h.same(h.counts(), semantics.Runtime{})
	}
}

func testTX_1_CommitInAPartition(t *testing.T, h *fixture) {
	h.spread(4)
	_ = h.partitionOfKey(orders, "k0")
	got := h.receiveKey("k0")
	before := h.snapshot()
	id := h.opens(completes(orders, got), sends(orders.Path, keyed("a", "k0")))
	if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
		t.Fatalf("an open transaction changed something (-before +after):\n%s", diff)
	}
	first, err := h.commit(h.broker, id)
	h.ok(err)
	again, err := h.commit(h.broker, id)
	h.ok(err)
	h.same(again.Results, first.Results)
	h.wantIDs(orders, "a")
	h.same(h.broker.Held(), 0)
	_, err = h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1})
	h.ok(err)
}

// A session, its state and its messages are in one partition, and so is what is sent to it.
func testTX_8_SessionOfAPartition(t *testing.T, h *fixture) {
	h.spread(4, func(o *semantics.Options) { o.RequiresSession = true })
	inSession := func(id, session string) *semantics.Message {
		m := text(id)
		m.SessionID = session
		return m
	}
	for i := range 8 {
		h.send(inSession("a", fmt.Sprint("s", i)))
	}
	partition := map[int]semantics.Source{}
	for i := range 8 {
		session := fmt.Sprint("s", i)
		held := h.acceptOf(orders, session)
		got := h.receiveOne(held)
		h.transact(completes(held, got), setsState(held, []byte(session)), sends(orders.Path, inSession("b", session)))
		h.same(h.receiveOne(held).MessageID, "b")
		state, err := h.broker.SessionState(t.Context(), held)
		h.ok(err)
		h.same(string(state.Data), session)
		partition[partitionOf(got)] = held
	}
	if len(partition) < 2 {
		t.Fatalf("all sessions are in partition %v", partition)
	}
	var some []semantics.Operation
	for _, held := range partition {
		some = append(some, setsState(held, nil))
	}
	_, err := h.broker.Transact(t.Context(), nil, some[:2])
	h.same(h.wantCode(err, semantics.PartitionKeyMismatch).Details[semantics.DetailOperation], "1")
}

// With duplicate detection the id of a message without a key is its key. One that Sidebus made under a request id is
// not: a repeat has another one, and finds the first answer all the same.
func testTX_8_MessageIDsAreKeys(_ *testing.T, h *fixture) {
	h.spread(4, detectsDuplicates)
	h.refusedTransaction(semantics.PartitionKeyMismatch, 1, sends(orders.Path, text("a")), sends(orders.Path, text("b")))
	h.transact(sends(orders.Path, text("a")))
	h.same(h.transact(sends(orders.Path, text("a")))[0].Sent[0].Deduplicated, true)
	h.transact(sends(orders.Path, keyed("b", "k0")), sends(orders.Path, keyed("c", "k0")))
	operations := func() []semantics.Operation {
		return []semantics.Operation{sends(orders.Path, text("")), sends(orders.Path, text(""), text(""))}
	}
	first := h.transactOnce(h.broker, "r", operations()...)
	again := h.transactOnce(h.peer(), "r", operations()...)
	h.same([]any{first.Repeated, again.Repeated}, []any{false, true})
	h.same(again.Results, first.Results)
	h.same(h.counts().Active, int64(6))
}
