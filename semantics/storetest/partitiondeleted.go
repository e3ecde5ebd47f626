package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// What other sidecars do while a queue with partitions is deleted, and what they know of it then.
var partitionDeletedTests = []ruleTest{
	testPART_1_ADeletionSparesWhatWasRecreated,
	testPART_1_NothingIsTakenAfterADeletion,
	testPART_1_ADeletionThatRedisForgot,
	testPART_1_AnotherDeletionCompletesTheFirst,
	testPART_1_ARecreationCompletesTheDeletion,
	testPART_1_ACreationAfterADeletionThatRedisForgot,
}

// ensure creates orders with partitions unless it is there.
func (h *fixture) ensure(store semantics.Store, n int64) {
	h.t.Helper()
	options := semantics.DefaultOptions()
	options.Partitions = n
	_, _, err := store.CreateEntity(h.t.Context(), semantics.QueueKind, "orders", options)
	h.ok(err)
}

// stale returns the store of another sidecar, which knows the partitions of orders.
func (h *fixture) stale(below partitioned.Below) *partitioned.Store {
	h.t.Helper()
	store := partitioned.New(below)
	_, err := store.Peek(h.t.Context(), orders, 0, 1, semantics.ShowAll)
	h.ok(err)
	return store
}

func (h *fixture) sendBy(store semantics.Store, id, key string) error {
	_, err := store.Send(h.t.Context(), "orders", []*semantics.Message{keyed(id, key)})
	return err
}

// A deletion deletes the queue that it saw. One that was created meanwhile stays, whole.
func testPART_1_ADeletionSparesWhatWasRecreated(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	for _, is := range []struct{ seen, present int64 }{{3, 3}, {3, 2}, {3, 1}, {1, 3}} {
		h.ensure(h.Store, is.seen)
		late := &around{Below: below}
		late.remove.set(func() {
			h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
			h.ensure(h.Store, is.present)
			h.ok(h.sendBy(h.Store, "new", "a"))
		})
		h.wantCode(partitioned.New(late).DeleteEntity(t.Context(), semantics.QueueKind, "orders"), semantics.EntityNotFound)
		for range 2 {
			h.same(messageIDs(h.peek(orders)), []string{"new"})
			h.ok(h.sendBy(h.stale(below), "other", "a"))
			h.wantCounts(2, 0, 0)
			_, err := h.Store.DeleteByNumber(t.Context(), orders, []int64{h.peek(orders)[1].SequenceNumber})
			h.ok(err)
		}
		h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	}
}

// A sidecar that was completing a creation when the queue was deleted brings no partition back, in which another one
// that does not know of the deletion could store a message.
func testPART_1_NothingIsTakenAfterADeletion(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(3)
	key := h.ofPartition(1)
	stale := h.stale(below)
	h.ok(below.DeleteEntity(t.Context(), semantics.QueueKind, spread.Path("orders", 1))) // as if it was never created
	completes, sent := &around{Below: below}, atomic.Bool{}
	completes.create.set(func() { h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders")) })
	completes.created.set(func() {
		sent.Store(true)
		h.wantCode(h.sendBy(stale, "late", key), semantics.EntityNotFound)
	})
	_, err := partitioned.New(completes).Peek(t.Context(), orders, 1, 1, semantics.ShowAll)
	h.wantCode(err, semantics.EntityNotFound)
	h.same(sent.Load(), true)
	h.wantCode(h.sendBy(stale, "later", key), semantics.EntityNotFound)
}

// deleteHidden deletes the partitions of an entity, and its definition, for good, as a deletion does of which Redis has
// forgotten that the record is gone.
func (h *fixture) deleteHidden(below partitioned.Below, kind semantics.Kind, paths ...string) {
	h.t.Helper()
	for _, path := range paths {
		h.ok(below.DeleteForGood(h.t.Context(), kind, path))
	}
}

// If Redis forgets that the record is gone, and the partitions are, the next call completes the deletion, and the queue
// can be created.
func testPART_1_ADeletionThatRedisForgot(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(3)
	key := h.ofPartition(1)
	h.deleteHidden(below, semantics.QueueKind, spread.Path("orders", 0), spread.Path("orders", 1), spread.Path("orders", 2))
	h.wantCode(h.sendBy(partitioned.New(below), "a", key), semantics.EntityNotFound)
	_, err := below.GetEntity(t.Context(), semantics.QueueKind, "orders")
	h.wantCode(err, semantics.EntityNotFound)
	h.ensure(h.Store, 3)
	h.ok(h.sendBy(h.Store, "b", key))
	h.wantCounts(1, 0, 0)
}

// The same if the next call is a creation: it finds the record, completes the deletion and creates another queue.
func testPART_1_ACreationAfterADeletionThatRedisForgot(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(3)
	h.send(text("old"), text("older"))
	h.deleteHidden(below, semantics.QueueKind, spread.Path("orders", 1))
	options := semantics.DefaultOptions()
	options.Partitions = 3
	_, created, err := partitioned.New(below).CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	h.ok(err)
	h.same(created, true)
	h.wantCounts(0, 0, 0)
}

// halfway deletes an entity, but only a part of it: the record, and calls-1 of what it has besides.
func (h *fixture) halfway(below partitioned.Below, kind semantics.Kind, path string, calls int64) {
	h.t.Helper()
	stops := &failing{Below: below}
	stops.left.Store(calls)
	err := partitioned.New(stops).DeleteEntity(h.t.Context(), kind, path)
	if !semantics.IsOutcomeUnknown(err) {
		h.t.Fatalf("got %v, want an unknown outcome", err)
	}
}

// After a deletion that found no queue, nothing of an earlier one is left.
func testPART_1_AnotherDeletionCompletesTheFirst(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	for calls := range int64(3) {
		h.ensure(h.Store, 3)
		stale := h.stale(below)
		h.halfway(below, semantics.QueueKind, "orders", calls+1)
		h.wantCode(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"), semantics.EntityNotFound)
		for i := range 20 {
			h.wantCode(h.sendBy(stale, "late", fmt.Sprint(i)), semantics.EntityNotFound)
		}
	}
}

// What a sidecar sends that knows the partitions of the deleted queue arrives in the one that was created.
func testPART_1_ARecreationCompletesTheDeletion(t *testing.T, h *fixture) {
	below := h.below()
	h.overPartitions()
	for _, n := range []int64{3, 2, 1} {
		h.ensure(h.Store, 3)
		stale := h.stale(below)
		h.halfway(below, semantics.QueueKind, "orders", 1)
		h.ensure(h.Store, n)
		for i := range 20 {
			h.ok(h.sendBy(stale, "late", fmt.Sprint(i)))
		}
		h.wantCounts(20, 0, 0)
		h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	}
}
