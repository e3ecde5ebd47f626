package storetest

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// commit commits a transaction for a caller who may do anything.
func (h *fixture) commit(b *broker.Broker, id string) (*broker.TransactionResult, error) {
	h.t.Helper()
	return b.Commit(h.t.Context(), id, func([]semantics.Operation) error { return nil })
}

// opens begins a transaction with operations.
func (h *fixture) opens(operations ...semantics.Operation) string {
	h.t.Helper()
	id, err := h.broker.Begin("app")
	h.ok(err)
	for _, o := range operations {
		_, err := h.broker.Add(h.t.Context(), id, []semantics.Operation{o})
		h.ok(err)
	}
	return id
}

func testTX_1_CommitRunsAll(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("replies")
	h.sendTexts(1)
	got := h.receive(orders, 1)
	id := h.opens(completes(orders, got...), sends("replies", text("a")), sends("replies", text("b")))
	h.receiveNone(semantics.Source{Path: "replies"}) // TX-4
	h.wantCounts(0, 1, 0)
	result, err := h.commit(h.broker, id)
	h.ok(err)
	h.same([]int64{result.Results[1].Sent[0].SequenceNumber, result.Results[2].Sent[0].SequenceNumber}, []int64{1, 2})
	h.wantCounts(0, 0, 0)
	again, err := h.commit(h.broker, id) // TX-12
	h.ok(err)
	h.same(again, &broker.TransactionResult{Results: result.Results, Repeated: true})
	h.wantNumbers(h.receive(semantics.Source{Path: "replies"}, 9), 1, 2)
	_, err = h.broker.Add(h.t.Context(), id, []semantics.Operation{sends("replies", text("late"))})
	h.wantUnlisted(err, semantics.TransactionNotFound)
	h.wantUnlisted(h.broker.Rollback(h.t.Context(), id), semantics.TransactionNotFound)
	empty, err := h.commit(h.broker, h.opens())
	h.ok(err)
	h.same(len(empty.Results), 0)
}

func testTX_6_Rollback(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receive(orders, 1)
	id := h.opens(completes(orders, got...), sends(orders.Path, text("reply")))
	h.ok(h.broker.Rollback(h.t.Context(), id))
	_, err := h.commit(h.broker, id)
	h.wantUnlisted(err, semantics.TransactionNotFound)
	h.wantCounts(0, 1, 0)
	h.transact(ends(semantics.OperationAbandon, orders, got...)) // by the same token
	h.same(h.receiveOne(orders).DeliveryCount, 2)
}

func testTX_9_UnknownTransactions(_ *testing.T, h *fixture) {
	h.create()
	other := h.newBroker(h.Store)
	for _, id := range []string{"", "nonsense", h.opens(sends(orders.Path, text("a")))} {
		_, err := h.commit(other, id)
		h.wantUnlisted(err, semantics.TransactionNotFound)
		_, err = other.Add(h.t.Context(), id, []semantics.Operation{sends(orders.Path, text("a"))})
		h.wantUnlisted(err, semantics.TransactionNotFound)
		h.wantUnlisted(other.Rollback(h.t.Context(), id), semantics.TransactionNotFound)
	}
	h.wantCounts(0, 0, 0)
	id := h.opens(sends("nowhere", text("a")))
	for range 2 { // a refused commit ends the transaction, and a repeat is told why
		_, err := h.commit(h.broker, id)
		h.wantCode(err, semantics.EntityNotFound)
	}
	h.createNamed("nowhere")
	_, err := h.commit(h.broker, id)
	h.wantCode(err, semantics.EntityNotFound)
}

// A reader that receives, works and crashes before its transaction leaves the message to another one.
func testTX_10_CrashedReaders(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("replies")
	h.sendTexts(1)
	first := h.receiveOne(orders)
	h.opens(completes(orders, first), sends("replies", text("reply"))) // and never commits
	h.Advance(lock)
	second := h.receiveOne(orders)
	h.refusedTransaction(semantics.MessageLockLost, 0, completes(orders, first), sends("replies", text("reply")))
	h.transact(completes(orders, second), sends("replies", text("reply")))
	h.wantNumbers(h.receive(semantics.Source{Path: "replies"}, 9), 1)
}

// wantUnlisted is wantCode for an error whose text has a random id.
func (h *fixture) wantUnlisted(err error, want semantics.Code) {
	h.t.Helper()
	if got := semantics.CodeOf(err); got != want {
		h.t.Fatalf("got error %v, want %s", err, want)
	}
}
