package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

var forwardTests = []ruleTest{
	testFWD_1_MovesWhatArrives,
	testFWD_1_KeepsWhatWasSent,
	testFWD_1_WhatIsThereWhenTheOptionIsSet,
	testFWD_1_MoreThanOneTransfer,
	testFWD_1_WhatTimeMakesAvailable,
	testFWD_1_LockedWhenTheOptionIsSet,
	testFWD_1_AnyStatusOfTheSource,
	testFWD_1_WakesAtTheDestination,
	testFWD_1_FromASubscription,
	testFWD_1_NothingToDo,
	testFWD_2_CannotBeReceivedFrom,
	testFWD_2_EndsWaits,
	testFWD_2_EndsStreams,
	testFWD_2_OtherVerbs,
	testFWD_4_NewNumberAndTime,
	testFWD_4_NumberOfTheFirstEntity,
	testFWD_6_KeepsTheOrder,
	testFWD_6_WhatCameBackGoesFirst,
	testFWD_10_IsNoActivity,
	testFWD_11_FanIn,
	testFWD_12_Counts,
	testDC_9_CountBeginsAnew,
	testTTL_24_LifeGoesOn,
	testTTL_24_DestinationMayShortenIt,
	testTTL_24_OverOnTheWay,
}

func testFWD_1_MovesWhatArrives(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(3)
	h.forward()
	h.same(h.runtime(), semantics.Runtime{}) // nothing is left, and nothing of its size
	h.wantIDs(archive, "m1", "m2", "m3")
	h.same(h.countsOf(archive), semantics.Runtime{Active: 3, Available: 3})
	h.sendTexts(1)
	h.forward()
	h.wantNumbers(h.receive(archive, 9), 1, 2, 3, 4)
	h.forward()
	h.same(h.countsOf(archive), semantics.Runtime{Active: 4, Locked: 4})
}

func testFWD_1_KeepsWhatWasSent(_ *testing.T, h *fixture) {
	h.createForwarding()
	ttl := time.Hour
	sent := &semantics.Message{
		MessageID: "id", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "x", To: "to", ReplyTo: "r", ReplyToSessionID: "rs",
		ContentType: "text/plain", TimeToLive: &ttl, ScheduledAt: h.in(-time.Hour), Body: []byte("b"), BodyKind: semantics.BodyJSON,
		AMQP:       []byte{2, 0, 0xff},
		Properties: properties{"p": semantics.Int64(1), "q": semantics.Null(), "RuleName": semantics.String("none")},
	}
	h.send(sent)
	h.forward()
	want := semantics.Received{
		Message: *sent, SequenceNumber: 1, EnqueuedSequenceNumber: 1, EnqueuedAt: h.Now(), ExpiresAt: h.in(ttl), Size: sent.Size(),
	}
	want.Forwarded = &semantics.Forwarded{Hops: 1, EnqueuedSequenceNumber: 1}
	h.same(h.peek(archive), []*semantics.Received{&want})
}

func testFWD_1_WhatIsThereWhenTheOptionIsSet(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	h.deadLetterTexts("dead")
	h.sendTexts(2)
	h.forward()
	h.wantIDs(archive)
	h.forwardTo("Archive") // in whatever case (ENT-4)
	h.forward()
	h.wantIDs(archive, "m1", "m2")
	h.wantNumbers(h.peek(deadOrders), 1)
	h.update(forwardsDeadTo("archive"), "forwardDeadLetteredMessagesTo")
	h.forward()
	h.wantIDs(archive, "m1", "m2", "dead")
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_1_MoreThanOneTransfer(_ *testing.T, h *fixture) {
	h.createForwarding()
	const many = 250
	h.sendTexts(many)
	h.ok(h.broker.Forward(h.t.Context(), orders))
	h.same(h.counts(), semantics.Runtime{})
	for i, m := range h.receive(archive, many+1) {
		h.same([]any{m.SequenceNumber, m.EnqueuedSequenceNumber, m.MessageID}, []any{int64(i + 1), int64(i + 1), fmt.Sprintf("m%d", i+1)})
	}
	h.same(h.countsOf(archive), semantics.Runtime{Active: many, Locked: many})
}

func testFWD_1_WhatTimeMakesAvailable(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	h.sendTexts(2)
	got := h.receive(orders, 2)
	h.setAside(orders, got[0])
	h.abandonFor(2*time.Second, orders, got[1])
	h.forwardTo(archive.Path)
	h.send(later("scheduled", h.in(time.Second)))
	h.forward()
	h.wantIDs(archive)
	h.Advance(time.Second)
	h.forward()
	h.wantIDs(archive, "scheduled")
	h.Advance(time.Second)
	h.forward()
	h.wantIDs(archive, "scheduled", "m2")
	h.ok(h.reactivate(orders, 1))
	h.forward()
	h.wantIDs(archive, "scheduled", "m2", "m1")
}

func testFWD_1_LockedWhenTheOptionIsSet(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.createNamed(archive.Path)
	h.sendTexts(7)
	got := h.receive(orders, 6)
	h.forwardTo(archive.Path)
	h.forward()
	h.wantIDs(archive, "m7")
	h.complete(orders, got[0]) // locks taken before still hold
	h.abandon(orders, got[1])
	h.release(orders, got[2])
	h.setAside(orders, got[3])
	h.deadLetter(got[4])
	h.forward()
	h.wantIDs(archive, "m7", "m2", "m3")
	h.wantNumbers(h.peek(deadOrders), 5)
	h.Advance(lock)
	h.forward()
	h.wantIDs(archive, "m7", "m2", "m3", "m6")
	h.same(h.counts(), semantics.Runtime{Active: 1, Deferred: 1, DeadLetter: 1})
}

func testFWD_1_AnyStatusOfTheSource(_ *testing.T, h *fixture) {
	h.createForwarding()
	for i, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusReceiveDisabled, semantics.StatusSendDisabled} {
		h.setStatus(semantics.StatusActive)
		h.sendTexts(1)
		h.setStatus(status)
		h.forward()
		h.same(len(h.peek(archive)), i+1)
	}
}

func testFWD_1_WakesAtTheDestination(t *testing.T, h *fixture) {
	h.createForwarding()
	done := h.newSidecar(h.Store).waiting(t.Context(), archive, 9)
	h.sendTexts(1)
	h.forward()
	h.awaitNumbers(done, 1)
}

func testFWD_1_FromASubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createNamed(archive.Path)
	h.createSubscription(eu, forwardsTo(archive.Path))
	h.createSubscription(us)
	h.publishTexts("a", "b")
	h.forward()
	h.wantIDs(eu)
	h.wantIDs(us, "a", "b")
	h.wantIDs(archive, "a", "b")
	h.same(h.runtimeOf(eu), semantics.Runtime{})
	h.same(h.topicRuntime().SizeInBytes, int64(4)) // those of the other subscription
}

// An operation on a source that forwards nothing, or does not exist, is not a failure: the sidecar that sweeps may have
// old information.
func testFWD_1_NothingToDo(t *testing.T, h *fixture) {
	h.create()
	h.createTopic()
	h.sendTexts(1)
	for _, source := range []semantics.Source{orders, deadOrders, archive, eu, deadEU} {
		h.ok(h.broker.Forward(t.Context(), source))
	}
	h.wantIDs(orders, "m1")
}

func testFWD_2_CannotBeReceivedFrom(t *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	h.deadLetterTexts("dead")
	h.sendTexts(2)
	h.setAside(orders, h.receiveOne(orders))
	h.forwardTo(archive.Path)
	for _, wait := range []time.Duration{0, time.Minute} {
		err := h.refused(semantics.InvalidOperation, func() error {
			return second(h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1, MaxWait: wait}))
		})
		h.same(err.Message, `entity "orders" forwards all its messages; receive from "archive"`)
	}
	h.refused(semantics.InvalidOperation, func() error { return h.receiveDeferred(orders, 2) })
	h.refused(semantics.InvalidOperation, func() error { return h.receiveNumbers(orders, 3) })
	h.setStatus(semantics.StatusDisabled) // which is said first (ERR-5)
	h.refused(semantics.EntityDisabled, func() error { return h.receiveNumbers(orders, 3) })
	h.setStatus(semantics.StatusActive)
	h.wantNumbers(h.receive(deadOrders, 9), 1) // its dead letters can be
	h.forwardTo("")
	h.wantNumbers(h.receive(orders, 9), 3)
}

func testFWD_2_EndsWaits(t *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	s := h.newSidecar(h.Store)
	main, dead := s.waiting(t.Context(), orders, 1), s.waiting(t.Context(), deadOrders, 1)
	h.forwardTo(archive.Path)
	h.wantCode(h.await(main).err, semantics.InvalidOperation)
	h.forwardTo("")
	h.deadLetterTexts("dead") // which those who wait for dead letters still do
	h.awaitNumbers(dead, 1)
}

func testFWD_2_EndsStreams(t *testing.T, h *fixture) {
	h.createTopic()
	h.createNamed(archive.Path)
	h.createSubscription(eu)
	h.publishTexts("a")
	s, next := h.stream(eu)
	h.complete(eu, next().Delivery.Messages...)
	h.updateSubscription(eu, forwardsTo(archive.Path), "forwardTo")
	again, _ := h.stream(eu)
	for _, ends := range []*stream.Subscription{s, again} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := ends.Next(ctx)
		cancel()
		h.wantCode(err, semantics.InvalidOperation)
	}
}

func testFWD_2_OtherVerbs(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	h.sendTexts(5)
	got := h.receive(orders, 2)
	h.setAside(orders, got[0])
	h.forwardTo(archive.Path)
	h.wantNumbers(h.peek(orders), 1, 2, 3, 4, 5)
	h.renew(orders, got[1])
	h.ok(h.reactivate(orders, 1))
	h.same(h.deleteNumbers(orders, 1, 2), []semantics.Code{"", semantics.MessageNotFound})
	h.same(h.purge(orders, broker.PurgeOptions{Before: h.in(time.Second), MaxMessages: 2}), int64(2))
	number := h.send(later("scheduled", h.in(time.Hour)))
	h.ok(h.cancel(number))
	h.forward()
	h.wantIDs(archive, "m5")
}

func testFWD_4_NewNumberAndTime(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendToQueue(archive, text("first"), text("second"))
	h.send(text("a"), text("b"))
	h.Advance(time.Second)
	h.forward()
	for i, m := range h.peek(archive)[2:] {
		h.same([]any{m.SequenceNumber, m.EnqueuedAt, m.EnqueuedSequenceNumber}, []any{int64(i + 3), h.Now(), int64(i + 1)})
	}
}

// Two hops, the first from a subscription, whose own number of the copy is not the topic's (MSG-6).
func testFWD_4_NumberOfTheFirstEntity(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createNamed(attic.Path)
	h.createNamed(archive.Path, forwardsTo(attic.Path))
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "x")}, forwardsTo(archive.Path))
	h.publish(text("a"), text("b"), about("x", text("c")))
	h.forward()
	m := h.receiveOne(attic)
	h.same([]any{m.MessageID, m.SequenceNumber, m.EnqueuedSequenceNumber, m.Forwarded.Hops}, []any{"c", int64(1), int64(3), 2})
	h.same([]any{m.DeadLetterSource, m.DeadLetterReason}, []any{"", ""})
}

func testFWD_6_KeepsTheOrder(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.createNamed(attic.Path, forwardsTo(archive.Path))
	h.create(forwardsTo(attic.Path))
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("%d", i))
		h.send(text(want[i]))
		if i%3 == 0 {
			h.ok(h.broker.Forward(h.t.Context(), orders))
		}
		if i%7 == 0 {
			h.ok(h.broker.Forward(h.t.Context(), attic))
		}
	}
	h.forward()
	h.wantIDs(archive, want...)
}

func testFWD_6_WhatCameBackGoesFirst(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path)
	h.sendTexts(5)
	got := h.receive(orders, 3)
	h.release(orders, got[2], got[0])
	h.abandon(orders, got[1])
	h.forwardTo(archive.Path)
	h.forward()
	h.wantIDs(archive, "m1", "m2", "m3", "m4", "m5")
}

// What arrives by forwarding keeps its destination as little alive as what the source is asked for then (FWD-10,
// IDLE-7).
func testFWD_10_IsNoActivity(_ *testing.T, h *fixture) {
	h.createForwarding(forwardsDeadTo(news))
	topic := h.createTopic()
	h.sendTexts(1)
	h.forwardTo("")
	h.deadLetterTexts("dead", "too")
	h.forwardTo(archive.Path)
	accessed := h.accessed()
	h.Advance(time.Second)
	h.forward()
	h.same(h.accessed(), accessed)
	queue, err := h.broker.GetEntity(h.t.Context(), semantics.QueueKind, archive.Path)
	h.ok(err)
	h.same(queue.AccessedAt, queue.CreatedAt)
	h.same(h.topic(), topic)
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_11_FanIn(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createNamed(archive.Path)
	const many = 12
	for i := range many {
		sub := subscription(fmt.Sprintf("s%d", i))
		h.createSubscription(sub, forwardsTo(archive.Path))
	}
	for i := range 3 {
		queue := semantics.Source{Path: fmt.Sprintf("q%d", i)}
		h.createNamed(queue.Path, forwardsTo(archive.Path))
		h.sendToQueue(queue, text("q"), text("r"))
	}
	h.publishTexts("a", "b")
	h.forward()
	seen := map[string]int{}
	for _, id := range messageIDs(h.receive(archive, 99)) {
		seen[id]++
	}
	h.same(seen, map[string]int{"a": many, "b": many, "q": 3, "r": 3})
	h.same(h.topicRuntime().SizeInBytes, int64(0))
}

func testFWD_12_Counts(_ *testing.T, h *fixture) {
	h.createNamed(attic.Path, holdsAtMost(2))
	h.createNamed(archive.Path, forwardsTo(attic.Path))
	h.create(forwardsTo(archive.Path))
	h.sendTexts(3)
	h.forward()
	forwarded, refused := h.broker.Forwarded()
	h.same([]int64{forwarded, refused}, []int64{3 + 2, 1})
}

func testDC_9_CountBeginsAnew(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed(archive.Path, deliversAtMost(2))
	h.sendTexts(1)
	for range 5 {
		h.abandon(orders, h.receiveOne(orders))
	}
	h.forwardTo(archive.Path)
	h.forward()
	h.same(h.peek(archive)[0].DeliveryCount, 0)
	m := h.receiveOne(archive)
	h.same(m.DeliveryCount, 1)
	h.abandon(archive, m)
	h.abandon(archive, h.receiveOne(archive))
	h.wantReasons(deadArchive, "MaxDeliveryCountExceeded")
}

func testTTL_24_LifeGoesOn(_ *testing.T, h *fixture) {
	h.create(livesFor(10 * time.Second))
	h.createNamed(archive.Path, buriesExpired)
	h.send(lasting("a", 5*time.Second), text("b"))
	ends := []time.Time{h.in(5 * time.Second), h.in(10 * time.Second)}
	h.Advance(3 * time.Second)
	h.forwardTo(archive.Path)
	h.forward()
	for i, m := range h.peek(archive) {
		h.same([]any{m.ExpiresAt, *m.TimeToLive}, []any{ends[i], ends[i].Sub(h.Now())})
	}
	h.Advance(2*time.Second - ms)
	h.release(archive, h.receive(archive, 9)...)
	h.Advance(ms)
	h.wantNumbers(h.receive(archive, 9), 2)
	h.wantReasons(deadArchive, "TTLExpiredException")
}

func testTTL_24_DestinationMayShortenIt(_ *testing.T, h *fixture) {
	h.createTopic(livesFor(4 * time.Second))
	h.createSubscription(eu, livesFor(6*time.Second))
	h.createSubscription(us, livesFor(2*time.Second))
	h.create(forwardsTo(news))
	h.send(text("never"), lasting("long", time.Hour), lasting("short", 3*time.Second))
	h.Advance(time.Second)
	h.forward()
	for source, want := range map[semantics.Source][]time.Duration{
		eu: {4 * time.Second, 4 * time.Second, 2 * time.Second},
		us: {2 * time.Second, 2 * time.Second, 2 * time.Second},
	} {
		for i, m := range h.peek(source) {
			h.same([]any{m.ExpiresAt, *m.TimeToLive}, []any{h.in(want[i]), want[i]})
		}
	}
}

// While it is carried it does not expire at its source, and at its destination it is too late for it.
func testTTL_24_OverOnTheWay(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, buriesExpired)
	h.create(forwardsTo(archive.Path), buriesExpired)
	h.send(lasting("a", time.Second), text("b"))
	h.begin(orders, archive.Path, 10)
	h.Advance(time.Second)
	h.same(h.counts(), semantics.Runtime{Transfer: 2})
	h.forward()
	h.wantNumbers(h.peek(deadOrders))
	h.wantNumbers(h.receive(archive, 9), 2)
	h.wantReasons(deadArchive, "TTLExpiredException")
	h.createNamed(attic.Path) // where it goes as a dead letter it has a life again, as long as that allows
	h.updateNamed(archive, forwardsDeadTo(attic.Path), "forwardDeadLetteredMessagesTo")
	h.forward()
	m := h.receiveOne(attic)
	h.same([]any{m.MessageID, m.ExpiresAt, m.TimeToLive}, []any{"a", time.Time{}, (*time.Duration)(nil)})
}
