package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionTests = []ruleTest{
	testPART_1_Option,
	testPART_1_WhatIsNotThereIsRefused,
	testPART_1_PartitionsAreHidden,
	testPART_1_CreatedAgainWithOtherPartitions,
	testPART_1_CreationThatEndsHalfway,
	testPART_1_DeletionThatEndsHalfway,
	testPART_1_UpdateReachesAllPartitions,
	testPART_1_FirstCallOfASidecar,
	testPART_2_AKeyHasItsPartition,
	testPART_2_WithoutKeyInTurn,
	testPART_2_AnotherPartitionWhenOneIsFull,
	testPART_2_RequestIDWithoutKey,
	testPART_2_SendEachKeepsOrderOfAKey,
	testPART_3_SequenceNumbers,
	testPART_4_AllPartitionsInTurn,
	testPART_4_OneReceiveTakesFromAll,
	testPART_4_WaitsForAnyPartition,
	testPART_4_WaitsAfterRecreation,
	testPART_4_EveryMessageOnce,
	testPART_5_PeekOldestFirst,
	testPART_5_PeekByNumber,
	testPART_5_CountsAreSums,
	testPART_5_SettlesInAllPartitions,
	testPART_5_NumbersOfOnePartition,
	testPART_5_PurgeGoesThroughAll,
	testBATCH_4_OnePartitionKey,
	testPART_6_ABatchStaysTogether,
	testPART_7_OtherPartitionsGoOn,
}

func partitions(n int64) change { return func(o *semantics.Options) { o.Partitions = n } }

// spread creates orders with partitions. From then on the test's store knows of partitions.
func (h *fixture) spread(n int64, changes ...change) {
	h.t.Helper()
	h.overPartitions()
	options := semantics.DefaultOptions()
	for _, c := range append(changes, partitions(n)) {
		c(&options)
	}
	_, err := h.broker.CreateEntity(h.t.Context(), semantics.QueueKind, orders.Path, options, semantics.OptionNames(semantics.QueueKind))
	h.ok(err)
}

// overPartitions lets the test's store know of partitions, and those of its peers.
func (h *fixture) overPartitions() {
	h.Store = partitioned.New(h.below())
	h.broker = h.newBroker(h.Store)
}

// below returns the store below the test's one, if that knows of partitions, else the test's one.
func (h *fixture) below() partitioned.Below { return withoutPartitions(h.Store) }

// withoutPartitions returns the store below one that knows of partitions, another store as it is.
func withoutPartitions(store semantics.Store) partitioned.Below {
	if spread, is := store.(*partitioned.Store); is {
		store = spread.Store
	}
	return store.(partitioned.Below)
}

// peer opens another sidecar.
func (h *fixture) peer() *broker.Broker {
	store := h.Store
	if h.Peer != nil {
		store = h.Peer()
	}
	return h.newBroker(partitioned.New(withoutPartitions(store)))
}

func keyed(id, key string) *semantics.Message {
	m := text(id)
	m.PartitionKey = key
	return m
}

func partitionOf(m *semantics.Received) int {
	_, p := semantics.PartitionOf(m.SequenceNumber)
	return p
}

func testPART_1_Option(t *testing.T, h *fixture) {
	h.overPartitions()
	create := func(n int64) error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, fmt.Sprintf("q%d", n), semantics.Options{Partitions: n}, []string{"partitions"})
		return err
	}
	for n, want := range map[int64]bool{1: false, 2: true, 64: true} {
		h.ok(create(n))
		queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, fmt.Sprintf("Q%d", n))
		h.ok(err)
		h.same([]any{queue.Options.Partitions, queue.Options.EnablePartitioning, queue.Kind}, []any{n, want, semantics.QueueKind})
	}
	h.wantCode(create(0), semantics.ArgumentOutOfRange)
	h.wantCode(create(65), semantics.ArgumentOutOfRange)
	h.wantCode(create(2), semantics.EntityAlreadyExists)
	for name, n := range map[string]int64{"q2": 3, "q1": 2} {
		_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, name, semantics.Options{Partitions: n}, []string{"partitions"})
		h.wantCode(err, semantics.PropertyImmutable)
	}
	ensured, err := h.broker.EnsureEntity(t.Context(), semantics.QueueKind, "q2", semantics.Options{Partitions: 3}, []string{"partitions"})
	h.ok(err)
	h.same(ensured.Differences, []semantics.Difference{{Option: "partitions", Present: "2", Asked: "3"}})
	_, err = h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{Partitions: 2}, []string{"partitions"})
	h.wantCode(err, semantics.InvalidArgument) // it has those of its topic
}

func testPART_1_WhatIsNotThereIsRefused(t *testing.T, h *fixture) {
	h.spread(2)
	changes := map[string]change{
		"autoDeleteOnIdle": func(o *semantics.Options) { o.AutoDeleteOnIdle = time.Hour },
	}
	for name, c := range changes {
		options := semantics.Options{Partitions: 2}
		c(&options)
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "other", options, []string{"partitions", name})
		h.same(h.wantCode(err, semantics.InvalidOperation).Details[semantics.DetailField], name)
		if !semantics.Immutable(name) {
			_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{name})
			h.wantCode(err, semantics.InvalidOperation)
		}
	}
	_, err := h.broker.AcceptSession(t.Context(), "orders", broker.AcceptOptions{SessionID: "a"})
	h.wantCode(err, semantics.SessionNotSupported)
}

// deadLetterAll makes everything that is available in orders a dead letter.
func (h *fixture) deadLetterAll() {
	h.t.Helper()
	codes, err := h.broker.DeadLetter(h.t.Context(), orders, tokensOf(h.receive(orders, 1000)...), broker.DeadLetterOptions{})
	h.settled(codes, err)
}

func testPART_1_PartitionsAreHidden(t *testing.T, h *fixture) {
	h.spread(3)
	h.createNamed("orders.eu")
	for _, b := range []*broker.Broker{h.broker, h.peer()} {
		queues, next, err := b.ListEntities(t.Context(), semantics.QueueKind, "", 2, "")
		h.ok(err)
		if len(queues) != 2 || queues[0].Name != "orders" || queues[1].Name != "orders.eu" || next != "" {
			t.Fatalf("listed %+v, next %q", queues, next)
		}
	}
	_, err := h.broker.Peek(t.Context(), semantics.Source{Path: "orders#1.0.0"}, 0, 1, semantics.ShowAll)
	h.wantCode(err, semantics.InvalidArgument)
}

func testPART_1_CreatedAgainWithOtherPartitions(t *testing.T, h *fixture) {
	h.spread(4)
	other := h.peer()
	target := semantics.ToQueue("orders")
	for _, n := range []int64{2, 1, 5} {
		_, err := other.Send(t.Context(), target, []*semantics.Message{keyed("old", "a")})
		h.ok(err)
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		_, err = other.Send(t.Context(), target, []*semantics.Message{keyed("none", "a")})
		h.wantCode(err, semantics.EntityNotFound)
		_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Partitions: n}, []string{"partitions"})
		h.ok(err)
		_, err = other.Send(t.Context(), target, []*semantics.Message{keyed("new", "a")})
		h.ok(err)
		h.same(messageIDs(h.peek(orders)), []string{"new"})
	}
}

// failing is a Store whose changes of entities fail from some call on.
type failing struct {
	partitioned.Below
	left atomic.Int64 // calls that do not
}

var errFailing = semantics.Errorf(semantics.StoreUnavailable, "test").With(semantics.DetailOutcome, semantics.OutcomeUnknown)

func (f *failing) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Entity{}, false, errFailing
	}
	return f.Below.CreateEntity(ctx, kind, path, options)
}

func (f *failing) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteEntity(ctx, kind, path)
}

func (f *failing) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Entity{}, errFailing
	}
	return f.Below.UpdateEntity(ctx, kind, path, options, names)
}

func (f *failing) CreateSubscription(ctx context.Context, path string, options semantics.Options, rules []semantics.Rule) (semantics.Entity, bool, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Entity{}, false, errFailing
	}
	return f.Below.CreateSubscription(ctx, path, options, rules)
}

func (f *failing) CreateRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	if f.left.Add(-1) < 0 {
		return semantics.Rule{}, errFailing
	}
	return f.Below.CreateRule(ctx, subscription, rule)
}

func (f *failing) DeleteRule(ctx context.Context, subscription, name string) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteRule(ctx, subscription, name)
}

func (f *failing) SetVersion(ctx context.Context, topic string, from, to int64) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.SetVersion(ctx, topic, from, to)
}

func (f *failing) DeleteRecord(ctx context.Context, kind semantics.Kind, name string, incarnation int64) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteRecord(ctx, kind, name, incarnation)
}

func (f *failing) DeleteForGood(ctx context.Context, kind semantics.Kind, path string) error {
	if f.left.Add(-1) < 0 {
		return errFailing
	}
	return f.Below.DeleteForGood(ctx, kind, path)
}

func testPART_1_CreationThatEndsHalfway(t *testing.T, h *fixture) {
	below, options := &failing{Below: h.below()}, semantics.DefaultOptions()
	options.Partitions = 3
	h.overPartitions()
	for _, calls := range []int64{0, 1, 2, 3} {
		below.left.Store(calls)
		_, _, err := partitioned.New(below).CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
		if !semantics.IsOutcomeUnknown(err) {
			t.Fatalf("after %d calls: got %v, want an unknown outcome", calls, err)
		}
		if calls > 0 { // the first call that misses a partition creates it
			for i := range 3 {
				_, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text(fmt.Sprint(i))})
				h.ok(err)
			}
			h.wantCounts(3, 0, 0)
			h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		}
	}
	below.left.Store(2)
	_, _, err := partitioned.New(below).CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	if !semantics.IsOutcomeUnknown(err) {
		t.Fatal(err)
	}
	_, created, err := h.Store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	h.ok(err)
	h.same(created, false)
	h.wantCounts(0, 0, 0)
}

func testPART_1_DeletionThatEndsHalfway(t *testing.T, h *fixture) {
	below := &failing{Below: h.below()}
	h.spread(3)
	h.send(text("old"))
	below.left.Store(2)
	err := partitioned.New(below).DeleteEntity(t.Context(), semantics.QueueKind, "orders")
	if !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	_, err = h.peer().Peek(t.Context(), orders, 0, 1, semantics.ShowAll)
	h.wantCode(err, semantics.EntityNotFound)
	h.ok(ignore(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"), semantics.EntityNotFound))
	_, err = h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Partitions: 3}, []string{"partitions"})
	h.ok(err)
	h.wantCounts(0, 0, 0)
}

func ignore(err error, code semantics.Code) error {
	if semantics.CodeOf(err) == code {
		return nil
	}
	return err
}

func testPART_1_UpdateReachesAllPartitions(t *testing.T, h *fixture) {
	h.spread(3)
	set := func(o semantics.Options, name string) {
		t.Helper()
		queue, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", o, []string{name, "userMetadata"})
		h.ok(err)
		h.same([]any{queue.Options.Partitions, queue.Options.UserMetadata}, []any{int64(3), o.UserMetadata})
	}
	set(semantics.Options{Status: semantics.StatusDisabled, UserMetadata: "x"}, "status")
	for range 3 {
		h.refusedSend(semantics.EntityDisabled, text("a"))
	}
	_, err := h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1})
	h.wantCode(err, semantics.EntityDisabled)
	set(semantics.Options{}, "status")
	set(semantics.Options{Durability: semantics.AtMemory}, "durability")
	_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Durability: semantics.AtReplica}, []string{"durability"})
	h.same(semantics.CodeOf(err), semantics.PreconditionFailed)
	set(semantics.Options{LockDuration: 7 * time.Second}, "lockDuration")
	for range 3 {
		h.send(text("a"))
	}
	for _, m := range h.receive(orders, 3) {
		h.same(m.LockedUntil, h.Now().Add(7*time.Second))
	}
	queue, err := h.broker.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same([]any{queue.Options.LockDuration, queue.Options.Status}, []any{7 * time.Second, semantics.StatusActive})
}

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
	h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "key"), keyed("b", "other"))
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

func testPART_4_AllPartitionsInTurn(t *testing.T, h *fixture) {
	const n = 5
	h.spread(n)
	for range 5 * n {
		h.send(text("a"))
	}
	for range 2 {
		served := map[int]bool{}
		for range 2 * n {
			served[partitionOf(h.receiveOne(orders))] = true
			h.receiveNone(deadOrders) // has turns of its own
		}
		if len(served) != n {
			t.Fatalf("only partitions %v were served", served)
		}
	}
}

func testPART_4_OneReceiveTakesFromAll(t *testing.T, h *fixture) {
	h.spread(4)
	for i := range 3 {
		h.send(keyed(fmt.Sprint(i), "one"))
	}
	if got := h.receive(orders, 10); len(got) != 3 { // wherever it begins
		t.Fatalf("received %d, want 3", len(got))
	}
	for range 10 {
		h.send(text("a"))
	}
	got := h.receive(orders, 7)
	got = append(got, h.receive(orders, 7)...)
	if len(got) != 10 {
		t.Fatalf("received %d, want 7 and 3", len(got))
	}
	h.complete(orders, got...)
	h.wantCounts(0, 3, 0)
}

func testPART_4_WaitsForAnyPartition(t *testing.T, h *fixture) {
	h.spread(8)
	s := h.newSidecar(h.Store)
	for i := range 16 {
		done := s.waiting(t.Context(), orders, 5)
		id := fmt.Sprint(i)
		_, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text(id)})
		h.ok(err)
		h.complete(orders, h.awaitIDs(done, id)...)
	}
}

func testPART_4_WaitsAfterRecreation(t *testing.T, h *fixture) {
	h.spread(4)
	s := h.newSidecar(h.Store)
	for _, n := range []int64{2, 1, 3} {
		done := s.waiting(t.Context(), orders, 1)
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		h.wantCode(h.await(done).err, semantics.EntityNotFound)
		if n == 3 { // what waited on one partition finds out later: see docs/decisions/0042
			s = h.newSidecar(h.Store)
		}
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Partitions: n}, []string{"partitions"})
		h.ok(err)
		done = s.waiting(t.Context(), orders, 1)
		h.send(text("a"))
		h.awaitIDs(done, "a")
	}
}

func testPART_4_EveryMessageOnce(t *testing.T, h *fixture) {
	h.spread(4)
	const total = 60
	for i := range total {
		h.send(text(fmt.Sprint(i)))
	}
	brokers := []*broker.Broker{h.broker, h.peer()}
	seen := make(chan string, total)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 6 {
		b := brokers[i%2]
		go func() {
			for ctx.Err() == nil {
				d, err := b.Receive(ctx, orders, broker.ReceiveOptions{MaxMessages: 1 + i, MaxWait: patience})
				if err != nil {
					return
				}
				codes, err := b.Complete(ctx, orders, tokensOf(d.Messages...))
				if len(d.Messages) > 0 && (err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" })) {
					t.Errorf("complete: %v, %v", codes, err)
				}
				for _, m := range d.Messages {
					seen <- m.MessageID
				}
			}
		}()
	}
	once := map[string]bool{}
	for range total {
		select {
		case id := <-seen:
			if once[id] {
				t.Fatalf("%s came twice", id)
			}
			once[id] = true
		case <-ctx.Done():
			t.Fatalf("%d of %d came", len(once), total)
		}
	}
}

func testPART_5_PeekOldestFirst(t *testing.T, h *fixture) {
	h.spread(4)
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("%02d", i)
		h.send(text(id))
		h.Advance(time.Second)
		want = append(want, id)
	}
	h.same(messageIDs(h.peek(orders)), want)
	h.same(messageIDs(h.peekFrom(orders, 0, 5)), want[:5])
	h.same(messageIDs(h.peekFrom(semantics.Source{Path: "ORDERS"}, 0, 1)), want[:1])
}

func testPART_5_PeekByNumber(t *testing.T, h *fixture) {
	h.spread(3)
	for range 10 {
		h.send(text("a"))
	}
	seen, from := 0, int64(1)
	for {
		page := h.peekFrom(orders, from, 2)
		for _, m := range page {
			if m.SequenceNumber < from {
				t.Fatalf("%d comes behind %d", m.SequenceNumber, from)
			}
			from = m.SequenceNumber + 1
		}
		if seen += len(page); len(page) == 0 {
			break
		}
	}
	h.same(seen, 10)
}

func testPART_5_CountsAreSums(t *testing.T, h *fixture) {
	h.spread(3)
	for range 9 {
		h.send(text("a"))
		h.Advance(time.Second)
	}
	later := text("later")
	later.ScheduledAt = h.Now().Add(time.Hour)
	h.send(later)
	got := h.receive(orders, 4)
	h.setAside(orders, got[0])
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[1]), broker.DeadLetterOptions{})
	h.settled(codes, err)
	counts := h.runtime()
	want := semantics.Runtime{
		Active: 8, Available: 5, Locked: 2, Deferred: 1, Scheduled: 1, DeadLetter: 1, SizeInBytes: counts.SizeInBytes,
		OldestEnqueuedAt: counts.OldestEnqueuedAt,
	}
	h.same(counts, want)
	var oldest time.Time
	for _, m := range h.peek(orders) {
		if m.State != semantics.Scheduled && (oldest.IsZero() || m.EnqueuedAt.Before(oldest)) {
			oldest = m.EnqueuedAt
		}
	}
	h.same(counts.OldestEnqueuedAt, oldest)
	h.Advance(time.Hour)
	h.same(h.runtime().Scheduled, int64(0))
}

func testPART_5_SettlesInAllPartitions(t *testing.T, h *fixture) {
	h.spread(4, deliversAtMost(2))
	for range 12 {
		h.send(text("a"))
	}
	got := h.receive(orders, 12)
	tokens := append(tokensOf(got...), semantics.NewLockToken(), semantics.NewLockToken().InPartition(3), semantics.NewLockToken().InPartition(63))
	renewals, err := h.broker.RenewLocks(t.Context(), orders, tokens)
	h.ok(err)
	for i, r := range renewals {
		h.same(r.Code == "", i < 12)
	}
	moved := got[0].LockToken // a token holds in its own partition only
	own, p := moved.Partition()
	codes, err := h.broker.Complete(t.Context(), orders, []semantics.LockToken{own.InPartition((p + 1) % 4), tokens[12], tokens[0], tokens[14], tokens[5]})
	h.wantCodes(codes, err, semantics.MessageLockLost, semantics.MessageLockLost, "", semantics.MessageLockLost, "")
	h.wantCounts(0, 10, 0)
	h.abandon(orders, got[1], got[2], got[3])
	h.abandon(orders, h.receive(orders, 3)...)
	h.wantCounts(0, 7, 3)
	dead := h.receive(deadOrders, 3)
	for _, m := range dead {
		h.same([]any{m.DeadLetterReason, m.DeadLetterSource}, []any{"MaxDeliveryCountExceeded", dead[0].DeadLetterSource})
	}
	h.complete(deadOrders, dead...)
	h.Advance(lock)
	h.wantCounts(7, 0, 0)
}

// A sidecar that knows nothing of the queue yet finds out, whatever its first call is.
func testPART_1_FirstCallOfASidecar(t *testing.T, h *fixture) {
	h.spread(3)
	tokens := func() []semantics.LockToken {
		h.send(text("a"))
		return tokensOf(h.receiveOne(orders))
	}
	for _, verb := range []func(*broker.Broker) ([]semantics.Code, error){
		func(b *broker.Broker) ([]semantics.Code, error) { return b.Complete(t.Context(), orders, tokens()) },
		func(b *broker.Broker) ([]semantics.Code, error) { return b.Release(t.Context(), orders, tokens()) },
		func(b *broker.Broker) ([]semantics.Code, error) { return b.Defer(t.Context(), orders, tokens(), nil) },
		func(b *broker.Broker) ([]semantics.Code, error) {
			return b.Abandon(t.Context(), orders, tokens(), semantics.AbandonOptions{})
		},
		func(b *broker.Broker) ([]semantics.Code, error) {
			return b.DeadLetter(t.Context(), orders, tokens(), broker.DeadLetterOptions{})
		},
		func(b *broker.Broker) ([]semantics.Code, error) {
			renewals, err := b.RenewLocks(t.Context(), orders, tokens())
			return []semantics.Code{renewals[0].Code}, err
		},
	} {
		codes, err := verb(h.peer())
		h.settled(codes, err)
	}
}

func testPART_5_NumbersOfOnePartition(t *testing.T, h *fixture) {
	h.spread(2)
	schedule := func(key string) int64 {
		m := keyed(key, key)
		m.ScheduledAt = h.Now().Add(time.Hour)
		return h.send(m)
	}
	cancel := func(numbers ...int64) error {
		_, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("orders"), numbers, nil)
		return err
	}
	keys := map[int]string{}
	for i := 0; len(keys) < 2; i++ {
		n := schedule(fmt.Sprint(i))
		_, p := semantics.PartitionOf(n)
		keys[p] = fmt.Sprint(i)
		h.ok(cancel(n))
		h.wantCode(cancel(n), semantics.MessageNotFound)
	}
	a, b := schedule(keys[0]), schedule(keys[1])
	h.wantCode(cancel(a, b), semantics.InvalidOperation)
	e := h.wantCode(cancel(b, b+1), semantics.MessageNotFound)
	h.same(e.Details[semantics.DetailNumbers], fmt.Sprint(b+1))
	h.wantCode(cancel(1<<50), semantics.MessageNotFound)
	h.ok(cancel(a))
	cancelled, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("orders"), nil, []string{keys[0], keys[1]})
	h.ok(err)
	h.same(cancelled, 1)

	h.send(keyed("x", keys[0]))
	h.send(keyed("y", keys[1]))
	got := h.receive(orders, 2)
	h.setAside(orders, got...)
	for _, m := range got {
		found, err := h.broker.ReceiveDeferred(t.Context(), orders, []int64{m.SequenceNumber}, semantics.PeekLock)
		h.ok(err)
		h.same(numbersOf(found.Messages), []int64{m.SequenceNumber})
		h.complete(orders, found.Messages...)
	}
	h.wantCounts(0, 0, 0)
}

func testPART_5_PurgeGoesThroughAll(t *testing.T, h *fixture) {
	h.spread(4)
	fill := func() {
		for range 30 {
			h.send(text("a"))
		}
		h.Advance(time.Second)
	}
	fill()
	purged := semantics.Purged{More: true}
	total := 0
	for purged.More {
		var err error
		purged, err = h.Store.Purge(t.Context(), orders, semantics.Purge{
			Show: semantics.ShowAvailable, Before: purged.Before, After: purged.Last, Limit: 3,
		})
		h.ok(err)
		total += purged.Deleted
	}
	h.same(total, 30)
	h.wantCounts(0, 0, 0)
	fill()
	h.deadLetterAll()
	dead := h.peek(deadOrders)
	codes, err := h.Store.DeleteByNumber(t.Context(), deadOrders, append(numbersOf(dead[:8]), 1<<50, 1<<40))
	h.ok(err)
	h.same(codes, append(make([]semantics.Code, 8), semantics.MessageNotFound, semantics.MessageNotFound))
	h.wantCounts(0, 0, 22)
}

func testBATCH_4_OnePartitionKey(_ *testing.T, h *fixture) {
	h.spread(4)
	h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "1"), keyed("b", "2"))
	h.refusedSend(semantics.PartitionKeyMismatch, keyed("a", "1"), text("b"))
	h.send(keyed("a", "1"), keyed("b", "1"))
	h.wantCounts(2, 0, 0)
}

// away is a Store of which one partition cannot be reached.
type away struct {
	partitioned.Below
	is func(path string) bool
}

// Server lets each entity have a server of its own.
func (away) Server(_ context.Context, path string) any { return path }

var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "test", RetryAfter: time.Second, Err: errors.New("away")}

func (a away) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	if a.is(path) {
		return nil, errAway
	}
	return a.Below.Send(ctx, path, messages)
}

func (a away) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if a.is(source.Path) {
		return semantics.Batch{}, errAway
	}
	return a.Below.Receive(ctx, source, limit, register)
}

func (a away) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if a.is(path) {
		return semantics.Entity{}, errAway
	}
	return a.Below.GetEntity(ctx, kind, path)
}

func testPART_7_OtherPartitionsGoOn(t *testing.T, h *fixture) {
	var gone atomic.Value
	gone.Store("")
	below := away{Below: h.below(), is: func(path string) bool { return path == gone.Load() }}
	h.Store = below
	h.spread(3)
	store := h.Store.(*partitioned.Store)
	h.send(keyed("k", "key"))
	lost := partitionOf(h.peek(orders)[0])
	gone.Store(store.Path("orders", lost))
	for range 6 {
		h.send(text("a"))
	}
	if got := h.receive(orders, 10); len(got) != 6 {
		t.Fatalf("received %d, want 6", len(got))
	}
	h.receiveNone(orders)
	_, err := h.Store.Send(t.Context(), "orders", []*semantics.Message{keyed("k", "key")})
	e := h.wantCode(err, semantics.StoreUnavailable)
	h.same(e.Details[semantics.DetailPartition], fmt.Sprint(lost))
	gone.Store("")
	d, err := h.newBroker(h.Store).Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 10, MaxWait: time.Minute})
	h.ok(err) // it passes the partition over, and hears when that is back
	h.same(messageIDs(d.Messages), []string{"k"})
}
