package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Dead letters that go to another queue by a transfer, as they do where the two are apart (DLQ-22).
var resubmitQueueTests = []ruleTest{
	testDLQ_22_TransferCarriedOnByAnother,
	testDLQ_22_TransferRepeated,
	testDLQ_22_TransferRefused,
	testDLQ_22_TransferTargetGone,
	testDLQ_22_TransferOvertaken,
}

// beginResubmission sets dead letters of orders aside for archive, as a sidecar does that crashes afterwards.
func (h *fixture) beginResubmission(how semantics.Resubmitting, numbers ...int64) semantics.Transfer {
	h.t.Helper()
	to, err := h.Store.Destination(h.t.Context(), archive.Path)
	h.ok(err)
	begun, err := h.Store.BeginResubmission(h.t.Context(), deadOrders, to, numbers, how)
	h.ok(err)
	h.same([]any{begun.IsNew, begun.Looked, len(begun.Messages), *begun.Resubmits}, []any{true, len(numbers), len(numbers), how})
	return begun.Transfer
}

// again returns what a transfer carries as it is sent again.
func again(transfer semantics.Transfer) []semantics.Publication {
	publications := make([]semantics.Publication, len(transfer.Messages))
	for i, m := range transfer.Messages {
		message := m.Message
		message.Properties, message.Forwarded = m.Own, nil
		publications[i].Message = &message
	}
	return publications
}

// Whatever the sidecar has done before it crashed, and whichever call comes next, each letter arrives once.
func testDLQ_22_TransferCarriedOnByAnother(t *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	toArchive := broker.ResubmitOptions{Target: archive.Path}
	next := map[string]func(){
		"forwarder": func() {
			h.ok(h.broker.Forward(t.Context(), deadOrders))
			h.ok(third(h.broker.Resubmit(t.Context(), deadOrders, toArchive)))
		},
		"resubmission": func() { h.ok(third(h.broker.Resubmit(t.Context(), deadOrders, toArchive))) },
		"resubmission home": func() {
			h.resubmit(broker.ResubmitOptions{})
			h.resubmit(toArchive)
			h.sendToQueue(archive, text("b"))
			h.complete(orders, h.receive(orders, 9)...)
		},
	}
	for name, carryOn := range next {
		for steps := 1; steps <= 2; steps++ {
			h.deadLetterTexts("a", "b")
			numbers := numbersOf(h.peek(deadOrders))
			transfer := h.beginResubmission(semantics.Resubmitting{}, numbers[0])
			h.same(h.runtime().Transfer, int64(1))
			if steps == 2 {
				h.same(h.arriveWith(transfer, again(transfer)), []semantics.Code{""})
			}
			h.Advance(1000 * time.Hour) // nothing else ends it
			h.release(deadOrders, h.receive(deadOrders, 9)...)
			carryOn()
			if name == "resubmission home" {
				h.ok(h.broker.Forward(t.Context(), deadOrders))
			}
			got := messageIDs(h.peek(archive))
			if len(got) != 2 || got[0] == got[1] {
				t.Errorf("%s after %d steps: %q arrived, want a and b", name, steps, got)
			}
			h.complete(archive, h.receive(archive, 9)...)
			h.wantNumbers(h.peek(deadOrders))
			h.same(h.runtime().Transfer, int64(0))
		}
	}
}

// Each step takes effect once, and the first arrival decides.
func testDLQ_22_TransferRepeated(t *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path, detectsDuplicates)
	h.sendToQueue(archive, text("b"))
	h.deadLetterTexts("a", "b")
	transfer := h.beginResubmission(semantics.Resubmitting{}, 1, 2)
	arrivals, err := h.Store.Arrive(t.Context(), transfer, 0, again(transfer), true)
	h.ok(err)
	h.same(arrivals, []semantics.Arrival{{Stored: stored(2)}, {Stored: duplicate(1)}})
	arrivals, err = h.Store.Arrive(t.Context(), transfer, 0, again(transfer), true)
	h.ok(err)
	h.same(arrivals, []semantics.Arrival{{}, {}}) // it was stored; which number it got only the first answer said
	h.end(transfer)
	h.end(transfer)
	h.wantIDs(archive, "b", "a")
	h.wantNumbers(h.peek(deadOrders))
	h.same(h.runtime(), semantics.Runtime{})
	h.isOver(transfer)
}

// isOver checks that a transfer that has ended neither arrives again nor comes back.
func (h *fixture) isOver(transfer semantics.Transfer) {
	h.t.Helper()
	h.ok(second(h.Store.Arrive(h.t.Context(), transfer, 0, again(transfer), true)))
	_, err := h.Store.BeginTransfer(h.t.Context(), deadOrders, semantics.Destination{}, 9)
	if !errors.Is(err, semantics.ErrForwardingChanged) {
		h.t.Errorf("a transfer that has ended is under way: %v", err)
	}
	h.wantIDs(archive, "b", "a")
}

// What the target does not take stays where it was, as it was.
func testDLQ_22_TransferRefused(t *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path, holdsAtMost(1), func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.send(sized(2000), text("a"), text("b"))
	h.deadLetter(h.receive(orders, 3)...)
	h.setAside(deadOrders, h.takeNumber(deadOrders, 1))
	h.same(h.resubmit(broker.ResubmitOptions{Target: archive.Path}), []broker.ResubmitResult{
		notMoved(1, semantics.MessageSizeExceeded), moved([2]int64{2, 1})[0], notMoved(3, semantics.EntityFull),
	})
	h.wantNumbers(h.peek(deadOrders), 1, 3)
	h.ok(h.reactivate(deadOrders, 1)) // deferred it still was
	h.updateNamed(archive, hasStatus(semantics.StatusSendDisabled), "status")
	h.wantCode(third(h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: archive.Path})), semantics.EntityDisabled)
	h.wantNumbers(h.peek(deadOrders), 1, 3)
	h.same(h.counts(), semantics.Runtime{DeadLetter: 2})
}

// A target that is deleted meanwhile, and one of the same name that is not the same, get nothing.
func testDLQ_22_TransferTargetGone(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b")
	h.setAside(deadOrders, h.takeNumber(deadOrders, 1))
	for _, isRecreated := range []bool{false, true} {
		h.createNamed(archive.Path)
		h.beginResubmission(semantics.Resubmitting{}, 1, 2)
		h.deleteQueue(archive)
		if isRecreated {
			h.createNamed(archive.Path)
		}
		h.Advance(time.Minute)
		h.ok(h.broker.Forward(t.Context(), deadOrders))
		h.wantNumbers(h.peek(deadOrders), 1, 2)
		h.same(h.counts(), semantics.Runtime{DeadLetter: 2})
	}
	h.wantIDs(archive)
	h.same(h.resubmit(broker.ResubmitOptions{Target: archive.Path}), moved([2]int64{1, 1}, [2]int64{2, 2}))
}

// A sidecar that was stopped for so long that others have finished its transfer, and one more, does no harm.
func testDLQ_22_TransferOvertaken(t *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	h.deadLetterTexts("a", "b")
	late := h.beginResubmission(semantics.Resubmitting{}, 1)
	h.ok(h.broker.Forward(t.Context(), deadOrders))
	transfer := h.beginResubmission(semantics.Resubmitting{}, 2)
	h.same(h.arriveWith(transfer, again(transfer)), []semantics.Code{""})
	_, err := h.Store.Arrive(t.Context(), late, 0, again(late), true)
	if !errors.Is(err, semantics.ErrOvertaken) {
		t.Errorf("a late arrival: %v", err)
	}
	h.end(late)
	h.same(h.runtime().Transfer, int64(1))
	h.end(transfer)
	h.wantIDs(archive, "a", "b")
	h.same(h.runtime(), semantics.Runtime{})
}
