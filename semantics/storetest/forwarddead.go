package storetest

import (
	"maps"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Dead letters that are forwarded.
var forwardDeadTests = []ruleTest{
	testFWD_9_DeadLettersGoOn,
	testFWD_9_ByTheBroker,
	testFWD_9_OfASubscriptionToATopic,
	testFWD_9_AreNormalMessages,
	testFWD_9_BeginANewLife,
	testFWD_9_OfSessions,
	testDLQ_15_TextsGoAlong,
	testDLQ_15_TextsStayOverMoreHops,
	testDLQ_15_LastSourceIsTold,
	testDLQ_15_NoTexts,
	testDLQ_15_DeadLetterHasItsOwnTexts,
	testMSG_17_ResubmittedWasNeverForwarded,
	testMSG_17_ResubmittedHasItsSize,
	testMSG_17_ResubmittedAfterAnAction,
	testDLQ_13_ReasonOfBeforeIsInTheDescription,
	testDLQ_13_DeadLetterAnew,
}

// createMourning makes archive, and orders, whose dead letters go there.
func (h *fixture) createMourning(changes ...change) {
	h.t.Helper()
	h.createNamed(archive.Path)
	h.create(append(changes, forwardsDeadTo(archive.Path))...)
}

func testFWD_9_DeadLettersGoOn(_ *testing.T, h *fixture) {
	h.createMourning()
	h.sendTexts(3)
	got := h.receive(orders, 3)
	h.deadLetter(got[1])
	h.deadLetter(got[0])
	h.forward()
	h.wantIDs(archive, "m2", "m1") // in the order in which they were dead-lettered
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1})
	h.complete(orders, got[2]) // and the queue itself is one like others
	h.sendTexts(1)
	h.wantNumbers(h.receive(orders, 9), 4)
}

func testFWD_9_ByTheBroker(_ *testing.T, h *fixture) {
	h.createMourning(buriesExpired, deliversAtMost(1))
	h.send(lasting("expired", time.Second), text("spent"))
	h.abandon(orders, h.takeNumbers(orders, 2)...)
	h.Advance(time.Second)
	h.forward() // without a call by another sidecar
	rows := h.peek(archive)
	h.same(messageIDs(rows), []string{"spent", "expired"})
	h.same([]string{rows[0].DeadLetterReason, rows[1].DeadLetterReason}, []string{"MaxDeliveryCountExceeded", "TTLExpiredException"})
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_9_OfASubscriptionToATopic(_ *testing.T, h *fixture) {
	const fates = "fates"
	poisoned, others := semantics.SubscriptionPath(fates, "poisoned"), semantics.SubscriptionPath(fates, "others")
	h.createTopic()
	h.createTopicNamed(fates)
	byReason := "DeadLetterReason = 'poison' AND DeadLetterErrorDescription LIKE '%read'"
	h.createSubscriptionWith(semantics.Source{Path: poisoned}, []semantics.Rule{onSQL("r", byReason)})
	h.createSubscriptionWith(semantics.Source{Path: others}, []semantics.Rule{doing(onSQL("r", "NOT ("+byReason+")"), "REMOVE DeadLetterReason")})
	h.createSubscription(eu, forwardsDeadTo(fates), deliversAtMost(1))
	h.createSubscription(us)
	h.publishTexts("a", "b")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.abandon(eu, h.receiveOne(eu))
	h.forward()
	h.wantIDs(semantics.Source{Path: poisoned}, "a")
	m := h.receiveOne(semantics.Source{Path: others})
	h.same([]any{m.MessageID, m.DeadLetterSource, m.EnqueuedSequenceNumber}, []any{"b", eu.Path, int64(2)})
	if _, has := m.Properties[semantics.PropertyDeadLetterReason]; has {
		h.t.Error("the property that the action removed is there again")
	}
	h.wantIDs(us, "a", "b")
}

func testFWD_9_AreNormalMessages(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, deliversAtMost(2), detectsDuplicates)
	h.create(forwardsDeadTo(archive.Path))
	h.deadLetterTexts("a", "a", "b")
	h.forward()
	h.wantIDs(archive, "a", "b")
	m := h.receiveOne(archive)
	h.same([]any{m.DeliveryCount, m.State, m.DeadLetteredAt, m.DeadLetterDeliveryCount}, []any{1, semantics.Active, time.Time{}, 0})
	h.abandon(archive, m)
	h.abandon(archive, h.receiveOne(archive))
	h.wantReasons(deadArchive, "MaxDeliveryCountExceeded")
}

// A dead letter has no end (TTL-19), so it cannot have had it when it arrives: it lives as long as if it was sent
// there.
func testFWD_9_BeginANewLife(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, livesFor(5*time.Second))
	h.create(forwardsDeadTo(archive.Path), buriesExpired, livesFor(time.Minute))
	h.send(lasting("expired", 2*time.Second), lasting("cut", 10*time.Second), text("never"))
	h.Advance(2 * time.Second)
	h.deadLetter(h.receive(orders, 2)...)
	h.Advance(time.Hour)
	h.forward()
	for i, want := range []time.Duration{2 * time.Second, 5 * time.Second, 5 * time.Second} {
		m := h.row(archive, int64(i+1))
		h.same([]any{*m.TimeToLive, m.ExpiresAt}, []any{want, h.in(want)})
	}
	h.Advance(2 * time.Second)
	h.wantNumbers(h.receive(archive, 9), 2, 3)
}

func testFWD_9_OfSessions(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasSessions)
	h.createSessions(forwardsDeadTo(archive.Path))
	h.sendTo("s", 2)
	source := h.accept("s")
	h.deadLetterIn(source, h.receive(source, 9)...)
	h.forward()
	got := h.receive(h.acceptOf(archive, "s"), 9)
	h.wantNumbers(got, 1, 2)
	h.same(got[0].DeadLetterSource, orders.Path)
	h.same(h.messageCounts(), semantics.Runtime{})
}

func testDLQ_15_TextsGoAlong(t *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.createNamed("Team/Orders", forwardsDeadTo(archive.Path))
	source := semantics.Source{Path: "team/orders"}
	sent := with(properties{"p": semantics.Int64(1)})
	h.sendToQueue(source, sent)
	options := why("why", "how")
	options.Properties = properties{"q": semantics.Bool(true)}
	codes, err := h.broker.DeadLetter(t.Context(), source, tokensOf(h.receiveOne(source)), options)
	h.settled(codes, err)
	h.Advance(time.Second)
	h.forward()
	m := h.receiveOne(archive)
	h.same([]any{m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource}, []any{"why", "how", "Team/Orders"})
	h.same(m.Properties, properties{
		"p": semantics.Int64(1), "q": semantics.Bool(true),
		semantics.PropertyDeadLetterReason: semantics.String("why"), semantics.PropertyDeadLetterDescription: semantics.String("how"),
	})
	h.same([]any{m.DeadLetteredAt, m.EnqueuedAt}, []any{time.Time{}, h.Now()})
	h.same(m.Size, m.Message.Size()) // they are properties now, and counted
}

func testDLQ_15_TextsStayOverMoreHops(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.createNamed(attic.Path, forwardsTo(news))
	h.createNamed(archive.Path, forwardsTo(attic.Path))
	h.create(forwardsDeadTo(archive.Path))
	h.deadLetterTexts("a")
	h.forward()
	m := h.receiveOne(eu)
	h.same([]any{m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource}, []any{"poison", "cannot be read", orders.Path})
	h.same(m.Properties[semantics.PropertyDeadLetterReason], semantics.String("poison"))
	h.same([]any{m.EnqueuedSequenceNumber, m.Forwarded.Hops}, []any{int64(1), 3})
}

func testDLQ_15_LastSourceIsTold(_ *testing.T, h *fixture) {
	h.createNamed(attic.Path)
	h.createNamed(archive.Path, forwardsDeadTo(attic.Path), deliversAtMost(1))
	h.create(forwardsDeadTo(archive.Path))
	h.deadLetterTexts("a")
	h.forward()
	h.abandon(archive, h.receiveOne(archive))
	h.forward()
	m := h.receiveOne(attic)
	h.same([]any{m.DeadLetterReason, m.DeadLetterSource, m.Forwarded.Hops}, []any{"MaxDeliveryCountExceeded", archive.Path, 2})
	h.same(m.Properties[semantics.PropertyDeadLetterReason], semantics.String("MaxDeliveryCountExceeded"))
}

// Without texts the properties of their names are what the sender made of them (MSG-4).
func testDLQ_15_NoTexts(t *testing.T, h *fixture) {
	h.createMourning()
	number := properties{semantics.PropertyDeadLetterReason: semantics.Int64(5)}
	h.send(with(number), with(number))
	got := h.receive(orders, 2)
	options := broker.DeadLetterOptions{Properties: properties{
		semantics.PropertyDeadLetterReason: semantics.Int64(7), semantics.PropertyDeadLetterDescription: semantics.Bool(true),
	}}
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[0]), options)
	h.settled(codes, err)
	codes, err = h.broker.DeadLetter(t.Context(), orders, tokensOf(got[1]), why("", ""))
	h.settled(codes, err)
	before := h.peek(deadOrders)
	h.forward()
	for i, m := range h.peek(archive) {
		h.same([]any{m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource}, []any{"", "", orders.Path})
		h.same(m.Properties, before[i].Properties)
	}
}

func testDLQ_15_DeadLetterHasItsOwnTexts(t *testing.T, h *fixture) {
	h.createMourning()
	h.deadLetterTexts("a", "b")
	h.forward()
	got := h.receive(archive, 2)
	codes, err := h.broker.DeadLetter(t.Context(), archive, tokensOf(got[0]), why("again", "and again"))
	h.settled(codes, err)
	h.release(archive, got[1])
	dead := h.receiveOne(deadArchive)
	h.same([]any{dead.DeadLetterReason, dead.DeadLetterErrorDescription, dead.DeadLetterSource}, []any{"again", "and again", orders.Path})
	h.same(dead.Properties[semantics.PropertyDeadLetterReason], semantics.String("again"))
	h.same(dead.DeadLetteredAt, h.Now())
	h.same(h.row(archive, 2).DeadLetterReason, "poison")
}

func testMSG_17_ResubmittedWasNeverForwarded(t *testing.T, h *fixture) {
	h.createMourning()
	h.send(with(properties{"p": semantics.Int64(1)}))
	sent := h.peek(orders)[0]
	h.deadLetter(h.receiveOne(orders))
	h.forward()
	h.deadLetterFrom(archive, h.receiveOne(archive))
	h.same(h.peek(deadArchive)[0].DeadLetterSource, orders.Path)
	h.ok(third(h.broker.Resubmit(t.Context(), deadArchive, broker.ResubmitOptions{})))
	m := h.peek(archive)[0]
	h.same([]any{m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource, m.EnqueuedSequenceNumber}, []any{"", "", "", int64(2)})
	h.same(m.Message, sent.Message) // with the properties and the size it was sent with
	h.same([]int64{m.Size, h.countSize(archive)}, []int64{sent.Size, sent.Size})
}

// Why a letter is dead now hides why it was before, and an application may put something else there (SETTLE-7). The
// size stays exact.
func testMSG_17_ResubmittedHasItsSize(t *testing.T, h *fixture) {
	number := broker.DeadLetterOptions{Properties: properties{semantics.PropertyDeadLetterReason: semantics.Int64(7)}}
	h.createMourning()
	for _, first := range []broker.DeadLetterOptions{why("why", "a longer text"), why("", ""), number} {
		for _, last := range []broker.DeadLetterOptions{why("x", ""), number} {
			h.send(with(properties{"p": semantics.Int64(1)}))
			want := h.peek(orders)[0]
			codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(h.receiveOne(orders)), first)
			h.settled(codes, err)
			h.forward()
			codes, err = h.broker.DeadLetter(t.Context(), archive, tokensOf(h.receiveOne(archive)), last)
			h.settled(codes, err)
			options := broker.ResubmitOptions{NewMessageIDs: true, Target: attic.Path}
			h.createNamed(attic.Path)
			h.ok(third(h.broker.Resubmit(t.Context(), deadArchive, options)))
			m := h.peek(attic)[0]
			for _, o := range []broker.DeadLetterOptions{first, last} { // bytes that are not text are data, and stay
				maps.Copy(want.Properties, o.Properties)
			}
			h.same([]any{m.Forwarded, m.Properties}, []any{(*semantics.Forwarded)(nil), want.Properties})
			h.same([]int64{m.Size, h.countSize(attic), h.countSize(archive)}, []int64{m.Message.Size(), m.Message.Size(), 0})
			h.deleteQueue(attic)
		}
	}
}

// An action that changes the texts makes them properties like others.
func testMSG_17_ResubmittedAfterAnAction(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("do"), "SET DeadLetterReason = 'because'; REMOVE DeadLetterErrorDescription")})
	h.create(forwardsDeadTo(news))
	h.deadLetterTexts("a")
	h.forward()
	m := h.receiveOne(eu)
	h.same([]any{m.DeadLetterReason, m.DeadLetterErrorDescription, m.DeadLetterSource}, []any{"", "", orders.Path})
	want := properties{semantics.PropertyDeadLetterReason: semantics.String("because"), "RuleName": semantics.String("do")}
	h.same(m.Properties, want)
	h.deadLetterFrom(eu, m)
	h.ok(third(h.broker.Resubmit(t.Context(), deadEU, broker.ResubmitOptions{})))
	m = h.receiveOne(eu)
	h.same([]any{m.Properties, m.DeadLetterSource}, []any{want, ""})
	h.same([]int64{m.Size, h.runtimeOf(eu).SizeInBytes}, []int64{m.Message.Size(), m.Message.Size()})
}

// third returns the error of a call with two other results.
func third[T, U any](_ T, _ U, err error) error { return err }

func (h *fixture) countSize(queue semantics.Source) int64 {
	h.t.Helper()
	r, err := h.broker.Runtime(h.t.Context(), semantics.QueueKind, queue.Path)
	h.ok(err)
	return r.SizeInBytes
}

func testDLQ_13_ReasonOfBeforeIsInTheDescription(_ *testing.T, h *fixture) {
	h.createMourning()
	h.deleteQueue(archive)
	h.deadLetterTexts("a")
	h.forward()
	h.wantUndelivered(semantics.ReasonDestinationNotFound, "poison: cannot be read", "a")
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 1})
}

// A dead letter that cannot be forwarded is a new dead letter: what happened to it before no longer counts, and its
// lifetime is that of the present option.
func testDLQ_13_DeadLetterAnew(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(10 * time.Second))
	h.createNamed(archive.Path, hasStatus(semantics.StatusDisabled))
	h.send(text("a"), text("b"))
	h.abandon(orders, h.receive(orders, 2)...)
	h.deadLetter(h.receive(orders, 2)...)
	h.abandon(deadOrders, h.receiveOne(deadOrders))
	died := h.row(deadOrders, 1)
	h.same([]int{died.DeliveryCount, died.DeadLetterDeliveryCount}, []int{1, 1})
	h.Advance(5 * time.Second)
	h.update(func(o *semantics.Options) {
		o.DeadLetterTTL, o.ForwardDeadLetteredMessagesTo = semantics.Never, archive.Path
	}, "deadLetterTtl", "forwardDeadLetteredMessagesTo")
	h.forward()
	moved := h.row(undelivered(orders), 1)
	h.same([]any{moved.DeliveryCount, moved.DeadLetterDeliveryCount, moved.DeadLetteredAt}, []any{1, 0, h.Now()})
	h.Advance(time.Hour)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 2})
}
