package storetest

import (
	"fmt"
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
