package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// How far messages are forwarded.
var forwardHopTests = []ruleTest{
	testFWD_5_LoopEnds,
	testFWD_5_LoopThroughATopic,
	testFWD_5_ResubmittedBeginsAnew,
	testFWD_5_SomeHaveGoneTooFar,
	testDLQ_10_TooFarInTheDeadLetterQueue,
}

func testFWD_5_LoopEnds(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.create(forwardsTo(archive.Path))
	h.updateNamed(archive, forwardsTo(orders.Path), "forwardTo")
	h.sendTexts(2)
	h.forward()
	h.same(h.countsOf(archive), semantics.Runtime{})
	h.same(h.counts(), semantics.Runtime{DeadLetter: 2}) // there, back, there, back: that is where it would leave
	for i, m := range h.peek(deadOrders) {
		h.same([]any{m.MessageID, m.DeadLetterReason, m.EnqueuedSequenceNumber, m.Forwarded.Hops, m.DeadLetterSource},
			[]any{fmt.Sprintf("m%d", i+1), semantics.ReasonTooManyHops, int64(i + 1), semantics.MaxForwardHops, ""})
		if d := m.DeadLetterErrorDescription; !strings.Contains(d, `"archive"`) || !strings.Contains(d, "4") {
			h.t.Errorf("the description is %q", d)
		}
	}
	forwarded, refused := h.broker.Forwarded()
	h.same([]int64{forwarded, refused}, []int64{8, 2})
}

// Of two subscriptions one leads back.
func testFWD_5_LoopThroughATopic(_ *testing.T, h *fixture) {
	h.createTopic()
	h.create(forwardsTo(news))
	h.createSubscription(eu, forwardsTo(orders.Path))
	h.createSubscription(us)
	h.send(text("a"))
	h.forward()
	h.wantIDs(us, "a", "a") // after one hop and after three
	h.wantReasons(deadOrders, semantics.ReasonTooManyHops)
}

func testFWD_5_ResubmittedBeginsAnew(_ *testing.T, h *fixture) {
	h.create()
	path := orders.Path
	for i := range semantics.MaxForwardHops + 2 { // orders -> q0 -> q1 -> ... q5
		h.createNamed(fmt.Sprintf("q%d", i))
		h.updateNamed(semantics.Source{Path: path}, forwardsTo(fmt.Sprintf("q%d", i)), "forwardTo")
		path = fmt.Sprintf("q%d", i)
	}
	h.sendTexts(1)
	h.forward()
	stuck := semantics.Source{Path: "q3"}
	h.wantReasons(deadOf(stuck), semantics.ReasonTooManyHops)
	_, _, err := h.broker.Resubmit(h.t.Context(), deadOf(stuck), broker.ResubmitOptions{})
	h.ok(err)
	h.same(h.peek(stuck)[0].Forwarded, (*semantics.Forwarded)(nil))
	h.same(h.peek(stuck)[0].EnqueuedSequenceNumber, int64(2))
	h.forward()
	m := h.receiveOne(semantics.Source{Path: "q5"})
	h.same([]any{m.MessageID, m.Forwarded.Hops, m.EnqueuedSequenceNumber}, []any{"m1", 2, int64(2)})
}

// Of one transfer some go on and some do not.
func testFWD_5_SomeHaveGoneTooFar(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, holdsAtMost(1))
	h.create()
	h.createNamed(attic.Path, forwardsTo(orders.Path))
	for i := range 2 {
		h.sendToQueue(attic, text(fmt.Sprint("near", i)))
		transfer := h.begin(attic, orders.Path, 9)
		publications := carried(transfer)
		far := text(fmt.Sprint("far", i))
		far.Forwarded = &semantics.Forwarded{Hops: semantics.MaxForwardHops, EnqueuedSequenceNumber: 77}
		publications = append(publications, semantics.Publication{Message: far})
		h.same(h.arriveWith(transfer, publications), []semantics.Code{"", ""})
		h.end(transfer)
	}
	h.wantIDs(orders, "near0", "far0", "near1", "far1")
	h.forwardTo(archive.Path)
	h.forward()
	h.wantIDs(archive, "near0")
	h.wantIDs(deadOrders, "far0", "far1")
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "near1")
	h.same(h.counts(), semantics.Runtime{DeadLetter: 2, TransferDeadLetter: 1})
}

func testDLQ_10_TooFarInTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.create(forwardsTo(archive.Path))
	h.updateNamed(archive, forwardsTo(orders.Path), "forwardTo")
	h.createNamed(attic.Path)
	h.update(forwardsDeadTo(attic.Path), "forwardDeadLetteredMessagesTo")
	h.sendTexts(1)
	h.forward()
	h.wantIDs(attic)
	h.wantIDs(deadOrders)
	h.wantIDs(undelivered(orders), "m1")
	h.wantReasons(undelivered(orders), semantics.ReasonTooManyHops)
}
