package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Dead letters that are sent again to a topic, whose rules decide who gets them (DLQ-22).
var resubmitTopicTests = []ruleTest{
	testDLQ_22_ToATopic,
	testDLQ_22_OfASubscriptionToAnyPlace,
	testDLQ_22_ToATopicThatRefuses,
	testDLQ_22_RefusedLettersAreNotDelayed,
	testDLQ_22_ToATopicThatIsNotThere,
	testDLQ_22_TransferDeadLettersToATopic,
	testDLQ_22_ToATopicWithDuplicates,
	testDLQ_22_CarriedOnByAnother,
	testDLQ_22_BehindAnotherTransfer,
	testTTL_25_ToATopic,
}

var toNews = broker.ResubmitOptions{Target: news, TargetIsTopic: true}

func (h *fixture) resubmitFrom(source semantics.Source, options broker.ResubmitOptions) []broker.ResubmitResult {
	h.t.Helper()
	results, more, err := h.broker.Resubmit(h.t.Context(), source, options)
	h.ok(err)
	h.same(more, false)
	return results
}

// sentOn is what is heard of dead letters that went to a topic.
func sentOn(numbers ...int64) (results []broker.ResubmitResult) {
	for _, n := range numbers {
		results = append(results, broker.ResubmitResult{SequenceNumber: n})
	}
	return results
}

func testDLQ_22_ToATopic(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "eu")})
	h.createSubscription(us)
	sent := &semantics.Message{
		MessageID: "id", SessionID: "s", PartitionKey: "s", Subject: "eu", Properties: properties{"p": semantics.Int64(1)}, Body: []byte("b"),
	}
	h.send(sent, about("us", text("b")), text("locked"), text("deferred"))
	got := h.receive(orders, 9)
	h.deadLetter(got...)
	locked := h.receive(deadOrders, 3)
	h.release(deadOrders, locked[0], locked[1])
	h.setAside(deadOrders, h.takeNumber(deadOrders, 4))
	h.Advance(time.Second)

	options := toNews
	options.Numbers = []int64{4, 1, 3, 99, 1}
	want := sentOn(4, 1, 3, 99, 1)
	want[2].Code, want[3].Code, want[4].Code = semantics.MessageNotFound, semantics.MessageNotFound, semantics.MessageNotFound
	h.same(h.resubmitFrom(deadOrders, options), want)
	h.wantIDs(eu, "id")
	h.wantIDs(us, "id", "deferred")
	m := h.peek(eu)[0]
	h.same(m.Message.Properties, sent.Properties) // as its sender sent it
	h.same([]any{m.SessionID, m.DeliveryCount, m.EnqueuedAt, m.DeadLetterReason, m.Forwarded == nil}, []any{"s", 0, h.Now(), "", true})
	h.wantNumbers(h.peek(deadOrders), 2, 3)
	h.same(h.counts().DeadLetter, int64(2))
	h.same(h.resubmitFrom(deadOrders, toNews), sentOn(2))
	h.wantIDs(us, "id", "deferred", "b")
	h.complete(deadOrders, locked[2])
	h.same(h.runtime(), semantics.Runtime{})
}

// takeNumber locks one message of a source by its number.
func (h *fixture) takeNumber(source semantics.Source, number int64) *semantics.Received {
	h.t.Helper()
	got, err := h.Store.ReceiveByNumber(h.t.Context(), source, semantics.Active, []int64{number})
	h.ok(err)
	return got[0]
}

func testDLQ_22_OfASubscriptionToAnyPlace(_ *testing.T, h *fixture) {
	h.create()
	h.createNews()
	h.publishTexts("a", "b", "c")
	h.deadLetterFrom(eu, h.receive(eu, 3)...)
	to := func(target string, isTopic bool, number int64) []broker.ResubmitResult {
		return h.resubmitFrom(deadEU, broker.ResubmitOptions{Target: target, TargetIsTopic: isTopic, Numbers: []int64{number}})
	}
	h.same(to("NEWS", true, 1), sentOn(1)) // its own topic, and so to all
	h.wantIDs(eu, "a")
	h.wantIDs(us, "a", "b", "c", "a")
	h.same(to("orders", false, 2), moved([2]int64{2, 1}))
	h.wantIDs(orders, "b")
	h.same(to("", false, 3), moved([2]int64{3, 5}))
	h.wantIDs(eu, "a", "c")
	h.wantIDs(us, "a", "b", "c", "a")
	h.wantNumbers(h.peek(deadEU))
}

// What the topic does not take stays where it was, as it was.
func testDLQ_22_ToATopicThatRefuses(t *testing.T, h *fixture) {
	h.create()
	h.createTopic(failsUnmatched, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "eu")})
	h.send(about("eu", text("a")), text("unmatched"), about("eu", sized(2000)))
	h.deadLetter(h.receive(orders, 3)...)
	h.setAside(deadOrders, h.takeNumber(deadOrders, 2))
	before := h.snapshot()
	refused := func() []broker.ResubmitResult {
		return []broker.ResubmitResult{notMoved(2, semantics.NoMatchingSubscription), notMoved(3, semantics.MessageSizeExceeded)}
	}
	options := toNews
	options.Numbers = []int64{2, 3}
	h.same(h.resubmitFrom(deadOrders, options), refused())
	h.same(h.snapshot(), before)
	h.same(h.resubmitFrom(deadOrders, toNews), append(sentOn(1), refused()...))
	h.wantIDs(eu, "a")
	h.wantMissing(h.reactivate(deadOrders, 1), "1")
	h.ok(h.reactivate(deadOrders, 2)) // deferred it still was

	h.updateTopic(hasStatus(semantics.StatusSendDisabled), "status")
	options.Numbers = []int64{2}
	h.same(h.resubmitFrom(deadOrders, options), []broker.ResubmitResult{notMoved(2, semantics.EntityDisabled)})
	h.update(hasStatus(semantics.StatusReceiveDisabled), "status")
	h.wantCode(third(h.broker.Resubmit(t.Context(), deadOrders, toNews)), semantics.EntityDisabled)
}

// A letter that was sent again is not delayed afterwards, as after any delivery.
func testDLQ_22_RefusedLettersAreNotDelayed(_ *testing.T, h *fixture) {
	h.create()
	h.createTopic(failsUnmatched)
	h.sendTexts(1)
	h.deadLetter(h.receiveOne(orders))
	h.abandonFor(1000*ms, deadOrders, h.receiveOne(deadOrders))
	options := toNews
	options.Numbers = []int64{1}
	h.same(h.resubmitFrom(deadOrders, options), []broker.ResubmitResult{notMoved(1, semantics.NoMatchingSubscription)})
	h.same(h.row(deadOrders, 1).VisibleAt, time.Time{})
	h.wantNumbers(h.receive(deadOrders, 1), 1)
}

func testDLQ_22_ToATopicThatIsNotThere(t *testing.T, h *fixture) {
	h.create()
	h.createNamed("other")
	h.deadLetterTexts("a")
	before := h.snapshot()
	for _, target := range []string{news, "other"} {
		options := broker.ResubmitOptions{Target: target, TargetIsTopic: true}
		err := h.wantCode(third(h.broker.Resubmit(t.Context(), deadOrders, options)), semantics.EntityNotFound)
		h.same(err.Details[semantics.DetailEntity], target)
	}
	h.createTopic()
	h.wantCode(third(h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: news})), semantics.EntityNotFound)
	h.wantCode(third(h.broker.Resubmit(t.Context(), deadEU, toNews)), semantics.EntityNotFound)
	h.same(h.snapshot(), before)
}

func testDLQ_22_TransferDeadLettersToATopic(_ *testing.T, h *fixture) {
	h.stranded(3)
	h.createNews()
	options := toNews
	options.Numbers = []int64{1, 3}
	h.same(h.resubmitFrom(undelivered(orders), options), sentOn(1, 3))
	h.same(len(h.peek(eu)), 2)
	h.same(h.peek(eu)[0].Forwarded == nil, true)
	h.wantNumbers(h.peek(undelivered(orders)), 2)
	h.same(h.resubmitFrom(undelivered(orders), toNews), sentOn(2))
	h.same(h.runtime(), semantics.Runtime{})
}

func testDLQ_22_ToATopicWithDuplicates(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.publishTexts("a", "b", "c")
	h.complete(us, h.receive(us, 3)...)
	h.deadLetterFrom(eu, h.receive(eu, 3)...)
	send := func(number int64, change func(*broker.ResubmitOptions)) {
		options := toNews
		options.Numbers = []int64{number}
		change(&options)
		h.same(h.resubmitFrom(deadEU, options), sentOn(number))
	}
	send(1, func(*broker.ResubmitOptions) {}) // the topic remembers it, so it is gone (DUP-5)
	h.wantIDs(us)
	send(2, func(o *broker.ResubmitOptions) { o.BypassDuplicates = true })
	h.wantIDs(us, "b")
	send(3, func(o *broker.ResubmitOptions) { o.NewMessageIDs = true })
	if id := h.peek(us)[1].MessageID; len(id) != 36 {
		h.t.Errorf("the new message id is %q", id)
	}
	h.wantNumbers(h.peek(deadEU))
}

// A sidecar that crashes during a resubmission leaves a transfer. The next sidecar that forwards there, or the next
// resubmission, completes it.
func testDLQ_22_CarriedOnByAnother(t *testing.T, h *fixture) {
	h.create()
	h.createNews()
	for _, isByForwarding := range []bool{true, false} {
		h.deadLetterTexts("a", "b")
		numbers := numbersOf(h.peek(deadOrders))
		to, err := h.Store.Destination(t.Context(), news)
		h.ok(err)
		how := semantics.Resubmitting{NewMessageIDs: true}
		begun, err := h.Store.BeginResubmission(t.Context(), deadOrders, to, numbers[:1], how)
		h.ok(err)
		h.same([]any{begun.IsNew, begun.Looked, len(begun.Messages), *begun.Resubmits}, []any{true, 1, 1, how})
		h.same(h.runtime().Transfer, int64(1))
		h.Advance(1000 * time.Hour) // nothing else ends it
		h.release(deadOrders, h.receive(deadOrders, 9)...)
		if isByForwarding {
			h.ok(h.broker.Forward(t.Context(), deadOrders))
		}
		h.same(h.resubmitFrom(deadOrders, toNews), sentOn(numbers[1]))
		if ids := messageIDs(h.peek(eu)); len(ids) != 2 || len(ids[0]) != 36 || ids[1] != "b" {
			h.t.Errorf("arrived as %q", ids)
		}
		h.complete(eu, h.receive(eu, 9)...)
		h.wantNumbers(h.peek(deadOrders))
	}
}

// Where dead letters are forwarded, a resubmission first carries on what is under way.
func testDLQ_22_BehindAnotherTransfer(t *testing.T, h *fixture) {
	h.create()
	h.createNamed("attic")
	h.createNews()
	h.deadLetterTexts("a", "b", "c")
	h.update(forwardsDeadTo("attic"), "forwardDeadLetteredMessagesTo")
	h.begin(deadOrders, "attic", 1)
	h.same(h.resubmitFrom(deadOrders, toNews), sentOn(2, 3))
	h.wantIDs(eu, "b", "c")
	h.wantIDs(semantics.Source{Path: "attic"}, "a")
	h.wantNumbers(h.peek(deadOrders))
	h.ok(h.broker.Forward(context.WithoutCancel(t.Context()), deadOrders))
	if err := h.broker.Forward(t.Context(), undelivered(orders)); err != nil && !errors.Is(err, semantics.ErrForwardingChanged) {
		h.t.Error(err)
	}
}

func testTTL_25_ToATopic(_ *testing.T, h *fixture) {
	h.create()
	h.createNews()
	h.send(lasting("a", time.Hour), lasting("b", time.Hour))
	h.deadLetter(h.receive(orders, 2)...)
	h.Advance(30 * time.Minute)
	kept := toNews
	kept.Numbers, kept.KeepExpiry = []int64{1}, true
	h.resubmitFrom(deadOrders, kept)
	h.resubmitFrom(deadOrders, toNews)
	got := h.peek(eu)
	h.same([]time.Time{got[0].ExpiresAt, got[1].ExpiresAt}, []time.Time{h.in(30 * time.Minute), h.in(time.Hour)})
}
