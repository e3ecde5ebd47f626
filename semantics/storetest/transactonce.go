package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// transactOnce is transact under a request id.
func (h *fixture) transactOnce(b *broker.Broker, id string, operations ...semantics.Operation) *broker.TransactionResult {
	h.t.Helper()
	result, err := b.Transact(h.t.Context(), &id, operations)
	h.ok(err)
	return result
}

func testTX_12_RepeatGivesTheFirstAnswer(_ *testing.T, h *fixture) {
	h.createSessions()
	h.createNamed("replies", detectsDuplicates)
	other := h.anotherBroker()
	h.sendTo("s", 2)
	source := h.accept("s")
	got := h.receive(source, 1)
	operations := func() []semantics.Operation {
		reply := &semantics.Message{Body: []byte("reply")} // gets an id of Sidebus
		return []semantics.Operation{completes(source, got...), setsState(source, []byte("step 2")), sends("replies", reply, text("x"), text("x"))}
	}
	first := h.transactOnce(h.broker, "r", operations()...)
	h.same(first.Repeated, false)
	first.Repeated, first.Operations = true, nil
	h.Advance(30 * time.Second)
	h.same(h.transactOnce(other, "r", operations()...), first)
	h.same(h.transactOnce(h.broker, "r", operations()...), first)
	h.same(h.state(source).Version, first.Results[1].Version)
	h.wantNumbers(h.receive(semantics.Source{Path: "replies"}, 5), 1, 2)
	settle := []semantics.Operation{completes(source, h.receive(source, 1)...)}
	h.same(h.transactOnce(h.broker, "only settles", settle...).Repeated, false)
	h.same(h.transactOnce(h.broker, "only settles", settle...).Repeated, true)
	h.Advance(2*time.Minute - 30*time.Second)
	_, err := h.broker.Transact(h.t.Context(), ptr("r"), operations())
	h.wantCode(err, semantics.SessionLockLost)
}

func testTX_12_OtherOperations(_ *testing.T, h *fixture) {
	h.create()
	h.transactOnce(h.broker, "r", sends(orders.Path, text("a")))
	for _, others := range [][]semantics.Operation{
		{sends(orders.Path, text("b"))},
		{sends(orders.Path, text("a"), text("a"))},
		{sends(orders.Path, text("a")), sends(orders.Path, text("b"))},
		{cancels(orders.Path, 1)},
	} {
		_, err := h.broker.Transact(h.t.Context(), ptr("r"), others)
		h.wantCode(err, semantics.InvalidArgument)
	}
	h.wantNumbers(h.receive(orders, 9), 1)
	_, err := h.broker.Transact(h.t.Context(), ptr(""), []semantics.Operation{sends(orders.Path, text("a"))})
	h.wantCode(err, semantics.InvalidArgument)
}

func testTX_12_RefusedLeavesNoTrace(_ *testing.T, h *fixture) {
	h.create()
	_, err := h.broker.Transact(h.t.Context(), ptr("r"), []semantics.Operation{sends(orders.Path, text("a")), sends("nowhere", text("a"))})
	h.wantCode(err, semantics.EntityNotFound)
	h.same(h.transactOnce(h.broker, "r", sends(orders.Path, text("other")), sends(orders.Path, text("b"))).Repeated, false)
}
