package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionTopicTests = []ruleTest{
	testPART_1_OptionOfATopic,
	testPART_8_CopiesLieWithTheirMessage,
	testPART_8_NoNameOfAPartitionIsSeen,
	testPART_8_EachPartitionHasAShare,
	testPART_8_WhatIsNotThereIsRefused,
	testPART_8_RequestIDWithoutKey,
	testPART_8_ScheduledOfAllPartitions,
	testPART_8_SweepersActivateEachPartition,
	testPART_8_WaitsForAnyPartition,
	testPART_8_DeadLettersAndNumbers,
	testPART_8_CreatedAgainIsEmpty,
	testPART_8_CreationThatEndsHalfway,
	testPART_8_SubscriptionThatIsCreatedHalfway,
	testPART_8_SubscriptionThatIsDeletedHalfway,
	testPART_8_UpdateThatEndsHalfway,
	testPART_8_RuleThatIsCreatedHalfway,
	testPART_8_RuleThatIsDeletedHalfway,
	testPART_8_DeletionThatEndsHalfway,
	testPART_8_SubscriptionOfAMissingPartition,
	testPART_8_LateSidecarsBringNothingBack,
	testPART_8_LevelDeletesWhatIsLeft,
	testPART_8_SubscriptionsForward,
	testPART_8_SessionsOfASubscription,
	testPART_8_DuplicatesOfATopic,
	testPART_8_TransactionsOnATopic,
}

// spreadNews creates news with partitions, and the subscriptions eu and us, which get every message. From then on the
// test's store knows of partitions. It returns the store below.
func (h *fixture) spreadNews(n int64, changes ...change) semantics.Store {
	h.t.Helper()
	h.overPartitions()
	below := withoutPartitions(h.Store)
	h.createNews(append(changes, partitions(n))...)
	return below
}

// publishToAll sends a message to each of the n partitions of news.
func (h *fixture) publishToAll(n int, id string) {
	h.t.Helper()
	h.publishToAllBy(h.broker, n, id)
}

func (h *fixture) publishToAllBy(b *broker.Broker, n int, id string) {
	h.t.Helper()
	for range n {
		h.publishBy(b, text(id)) // they take turns
	}
}

// wantOfAll checks that a source has these messages, in any order, and removes them.
func (h *fixture) wantOfAll(source semantics.Source, n int, ids ...string) {
	h.t.Helper()
	var want []string
	for _, id := range ids {
		want = append(want, slices.Repeat([]string{id}, n)...)
	}
	var got []string
	for {
		messages := h.receive(source, 100)
		if len(messages) == 0 {
			break
		}
		got = append(got, messageIDs(messages)...)
		h.complete(source, messages...)
	}
	slices.Sort(got)
	slices.Sort(want)
	h.same(got, want)
}

// endsHalfway runs a change through a sidecar whose way to the store breaks after 0, 1, 2, ... changes there, until one
// comes to its end. Before each, prepare makes what is to be changed; behind each, check looks what is there, done being
// whether the change was made as far as clients may see.
func (h *fixture) endsHalfway(
	below semantics.Store, prepare func(), change func(*broker.Broker) error, check func(steps int64, whole bool),
) {
	h.t.Helper()
	for steps := int64(0); ; steps++ {
		prepare()
		f := &failing{Store: below}
		f.left.Store(steps)
		killed := partitioned.New(f)
		_, _ = killed.Routes(h.t.Context(), news) // so that it knows the topic, if there is one
		err := change(h.newBroker(killed))
		if err != nil && !semantics.IsOutcomeUnknown(err) {
			h.t.Fatalf("after %d steps: got %v, want an unknown outcome", steps, err)
		}
		check(steps, err == nil)
		if err == nil {
			if steps < 3 {
				h.t.Fatalf("only %d steps were broken off", steps)
			}
			return
		}
	}
}

func testPART_1_OptionOfATopic(t *testing.T, h *fixture) {
	h.overPartitions()
	create := func(name string, n int64) error {
		_, err := h.broker.CreateEntity(t.Context(), semantics.TopicKind, name, semantics.Options{Partitions: n}, []string{"partitions"})
		return err
	}
	for n, want := range map[int64]bool{1: false, 2: true, 64: true} {
		name := fmt.Sprintf("T%d", n)
		h.ok(create(name, n))
		topic, err := h.broker.GetEntity(t.Context(), semantics.TopicKind, strings.ToLower(name))
		h.ok(err)
		h.same([]any{topic.Name, topic.Options.Partitions, topic.Options.EnablePartitioning, topic.Kind}, []any{name, n, want, semantics.TopicKind})
		h.wantCode(create(name, n), semantics.EntityAlreadyExists)
		h.wantCode(h.make(semantics.QueueKind, name), semantics.EntityAlreadyExists)
		h.wantCode(h.get(semantics.QueueKind, name), semantics.EntityNotFound)
		h.wantCode(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, name), semantics.EntityNotFound)
	}
	h.wantCode(create("other", 0), semantics.ArgumentOutOfRange)
	h.wantCode(create("other", 65), semantics.ArgumentOutOfRange)
	_, err := h.broker.UpdateEntity(t.Context(), semantics.TopicKind, "t2", semantics.Options{Partitions: 3}, []string{"partitions"})
	h.wantCode(err, semantics.PropertyImmutable)
	topics, _, err := h.broker.ListEntities(t.Context(), semantics.TopicKind, "", 0, "")
	h.ok(err)
	h.same(len(topics), 3)
}

func testPART_8_CopiesLieWithTheirMessage(t *testing.T, h *fixture) {
	h.spreadNews(5)
	partitionsOf := map[string]int{}
	for i := range 20 {
		key := fmt.Sprint("key", i%8)
		results, err := h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{keyed(fmt.Sprint(i), key)})
		h.ok(err)
		_, p := semantics.PartitionOf(results[0].SequenceNumber)
		if of, known := partitionsOf[key]; known && of != p {
			t.Fatalf("%s is in partition %d and %d", key, of, p)
		}
		partitionsOf[key] = p
	}
	for _, b := range []*broker.Broker{h.broker, h.peer()} {
		for _, source := range []semantics.Source{eu, us} {
			messages, err := b.Peek(t.Context(), source, 1, 100, semantics.ShowAll)
			h.ok(err)
			h.same(len(messages), 20)
			for _, m := range messages {
				_, ofTopic := semantics.PartitionOf(m.EnqueuedSequenceNumber)
				h.same([]int{partitionOf(m), ofTopic}, []int{partitionsOf[m.PartitionKey], partitionsOf[m.PartitionKey]})
			}
		}
	}
	runtime := h.topicRuntime()
	h.same([]int64{runtime.Subscriptions, h.runtimeOf(eu).Active, runtime.SizeInBytes}, []int64{2, 20, 2 * h.runtimeOf(us).SizeInBytes})
}

func testPART_8_NoNameOfAPartitionIsSeen(t *testing.T, h *fixture) {
	h.spreadNews(3)
	for _, b := range []*broker.Broker{h.broker, h.peer()} {
		subs, next, err := b.ListEntities(t.Context(), semantics.SubscriptionKind, "NEWS", 0, "")
		h.ok(err)
		if len(subs) != 2 || subs[0].Name != eu.Path || subs[1].Name != us.Path || next != "" {
			t.Fatalf("listed %+v, next %q", subs, next)
		}
		sub, err := b.GetEntity(t.Context(), semantics.SubscriptionKind, "NEWS/subscriptions/EU")
		h.ok(err)
		h.same([]any{sub.Name, sub.Options.Partitions}, []any{eu.Path, int64(1)})
	}
	failures := []error{
		h.make(semantics.SubscriptionKind, eu.Path),
		second(h.broker.GetRule(t.Context(), eu.Path, "none")),
		h.get(semantics.SubscriptionKind, "news/Subscriptions/none"),
		second(h.broker.Peek(t.Context(), subscription("none"), 0, 1, semantics.ShowAll)),
		second(h.broker.Receive(t.Context(), semantics.Source{Path: news}, broker.ReceiveOptions{MaxMessages: 1})),
	}
	h.updateTopic(hasStatus(semantics.StatusDisabled), "status")
	failures = append(failures, second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("a")})))
	h.updateSubscription(eu, hasStatus(semantics.StatusDisabled), "status")
	failures = append(failures, second(h.broker.Receive(t.Context(), eu, broker.ReceiveOptions{MaxMessages: 1})))
	for i, err := range failures {
		if err == nil || strings.Contains(fmt.Sprint(err, semantics.AsError(err).Details), "#") {
			t.Errorf("failure %d: %v %v", i, err, semantics.AsError(err).Details)
		}
	}
}

func testPART_8_EachPartitionHasAShare(t *testing.T, h *fixture) {
	h.overPartitions()
	h.createTopic(partitions(3))
	h.createSubscription(eu, func(o *semantics.Options) { o.MaxMessageCount = 6 })
	for range 2 {
		h.publish(keyed("k", "key"))
	}
	send := func(m *semantics.Message) error {
		return second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{m}))
	}
	h.same(h.wantCode(send(keyed("k", "key")), semantics.EntityFull).Details[semantics.DetailEntity], eu.Path)
	for range 4 {
		h.publish(text("a")) // one that is full is skipped
	}
	h.wantCode(send(text("a")), semantics.EntityFull)
	h.same(h.runtimeOf(eu).Active, int64(6))
}

func testPART_8_WhatIsNotThereIsRefused(t *testing.T, h *fixture) {
	h.spreadNews(2)
	h.createNamed("plain")
	refused := func(kind semantics.Kind, path, name string, c change) {
		t.Helper()
		options := semantics.Options{Partitions: 2}
		c(&options)
		given := []string{name}
		if kind == semantics.TopicKind {
			given = append(given, "partitions")
		}
		_, err := h.broker.CreateEntity(t.Context(), kind, path, options, given)
		h.same(h.wantCode(err, semantics.InvalidOperation).Details[semantics.DetailField], name)
	}
	refused(semantics.TopicKind, "other", "unmatchedTo", func(o *semantics.Options) { o.UnmatchedTo = "plain" })
	refused(semantics.TopicKind, "other", "autoDeleteOnIdle", func(o *semantics.Options) { o.AutoDeleteOnIdle = time.Hour })
	other := subscription("other").Path
	refused(semantics.SubscriptionKind, other, "autoDeleteOnIdle", func(o *semantics.Options) { o.AutoDeleteOnIdle = time.Hour })
	_, err := h.broker.UpdateEntity(t.Context(), semantics.TopicKind, news, semantics.Options{UnmatchedTo: "plain"}, []string{"unmatchedTo"})
	h.wantCode(err, semantics.InvalidOperation)
	_, err = h.broker.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{AutoDeleteOnIdle: time.Hour}, []string{"autoDeleteOnIdle"})
	h.wantCode(err, semantics.InvalidOperation)
	_, err = h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "plain", semantics.Options{ForwardTo: news}, []string{"forwardTo"})
	h.wantCode(err, semantics.ForwardDestinationInvalid)
}

func testPART_8_RequestIDWithoutKey(_ *testing.T, h *fixture) {
	h.spreadNews(8)
	first := h.sendOnce(semantics.ToTopic(news), "r1", text("a"))
	for range 8 {
		again := h.sendOnce(semantics.ToTopic(news), "r1", text("a"))
		h.same(again.Results, first.Results)
	}
	h.wantOfAll(eu, 1, "a")
}

func testPART_8_ScheduledOfAllPartitions(_ *testing.T, h *fixture) {
	h.spreadNews(3)
	var numbers []int64
	for range 6 {
		numbers = append(numbers, h.publish(later("a", h.in(time.Hour)))[0].SequenceNumber)
	}
	h.same(h.topicRuntime().Scheduled, int64(6))
	h.same(len(h.peek(semantics.Source{Path: news})), 6)
	h.wantCode(h.cancelPublished(numbers...), semantics.InvalidOperation)
	h.ok(h.cancelPublished(numbers[1], numbers[4]))
	h.wantCode(h.cancelPublished(numbers[1]), semantics.MessageNotFound)
	h.activate()
	h.wantOfAll(eu, 0)
	h.Advance(time.Hour)
	h.createRule(eu, doing(always("copy"), "SET x = 1")) // the rules of that time decide
	h.activate()
	h.same(h.topicRuntime().Scheduled, int64(0))
	h.wantOfAll(eu, 8, "a")
	h.wantOfAll(us, 4, "a")
}

func testPART_8_SweepersActivateEachPartition(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	for range 3 {
		h.publish(later("a", h.in(time.Minute)))
	}
	h.Advance(time.Minute)
	h.ok(h.Sweep(t.Context(), below, h.broker))
	h.same(h.topicRuntime().Scheduled, int64(0))
	h.wantOfAll(eu, 3, "a")
}

func testPART_8_WaitsForAnyPartition(t *testing.T, h *fixture) {
	h.spreadNews(4)
	watched := &observed{Store: h.Store, empty: make(chan struct{})}
	waiting := h.newBroker(watched)
	for i := range 8 {
		got := make(chan []*semantics.Received, 1)
		go func() {
			defer close(got)
			delivery, err := waiting.Receive(t.Context(), eu, broker.ReceiveOptions{MaxMessages: 5, MaxWait: patience})
			if err == nil {
				got <- delivery.Messages
			}
		}()
		<-watched.empty
		h.publish(text(fmt.Sprint(i)))
		messages := <-got
		h.same(messageIDs(messages), []string{fmt.Sprint(i)})
		h.complete(eu, messages...)
	}
}

func testPART_8_DeadLettersAndNumbers(_ *testing.T, h *fixture) {
	h.spreadNews(3)
	for i := range 9 {
		h.publish(text(fmt.Sprint(i)))
		h.Advance(time.Second)
	}
	got := h.receive(eu, 9)
	h.deadLetterFrom(eu, got[:3]...)
	h.setAside(eu, got[3])
	h.abandon(eu, got[4:]...)
	counts := h.runtimeOf(eu)
	h.same([]int64{counts.Active, counts.DeadLetter, counts.Deferred}, []int64{6, 3, 1})
	h.complete(eu, h.takeDeferred(eu, got[3].SequenceNumber)...)
	h.complete(deadEU, h.receive(deadEU, 3)...)
	h.same(h.runtimeOf(eu).Total(), int64(5))
	h.same(messageIDs(h.peek(us)), []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"})
}

func testPART_8_CreatedAgainIsEmpty(t *testing.T, h *fixture) {
	h.spreadNews(4)
	other := h.peer()
	send := func(id string) error {
		return second(other.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text(id)}))
	}
	for i := range 4 {
		h.ok(send("old"))
		old := h.receiveOne(eu)
		h.deleteSubscription(eu)
		h.ok(send("between"))
		h.createSubscription(eu)
		codes, err := other.Complete(t.Context(), eu, tokensOf(old))
		h.wantCodes(codes, err, semantics.MessageLockLost)
		h.ok(send("new"))
		messages, err := other.Peek(t.Context(), eu, 0, 10, semantics.ShowAll)
		h.ok(err)
		h.same(messageIDs(messages), []string{"new"})
		h.deleteTopic()
		h.wantCode(send("none"), semantics.EntityNotFound)
		h.createNews(partitions(int64(i)%3 + 1))
	}
}

func testPART_8_CreationThatEndsHalfway(t *testing.T, h *fixture) {
	h.overPartitions()
	below := withoutPartitions(h.Store)
	create := func(b *broker.Broker) error {
		_, err := b.EnsureEntity(t.Context(), semantics.TopicKind, news, semantics.Options{Partitions: 2}, []string{"partitions"})
		return err
	}
	h.endsHalfway(below, func() {}, create, func(steps int64, _ bool) {
		if steps == 0 || steps%2 == 1 { // its repeat completes it, or the next look
			h.ok(create(h.broker))
		}
		h.createSubscription(eu)
		h.publishToAll(2, "a")
		h.wantOfAll(eu, 2, "a")
		h.deleteTopic()
	})
}

func testPART_8_SubscriptionThatIsCreatedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	asia := subscription("asia")
	create := func(b *broker.Broker) error {
		_, err := b.EnsureEntity(t.Context(), semantics.SubscriptionKind, asia.Path, semantics.Options{}, nil)
		return err
	}
	for _, repeats := range []bool{true, false} {
		h.endsHalfway(below, func() {}, create, func(steps int64, whole bool) {
			sender := h.peer() // that reads the subscriptions now; others may have old ones until all partitions follow
			if repeats {
				h.ok(create(h.peer()))
				sender = h.broker
			}
			h.publishToAllBy(sender, 3, "a")
			h.wantOfAll(eu, 3, "a")
			if whole || repeats || steps > 0 { // from the first step on it is there
				h.wantOfAll(asia, 3, "a")
				h.deleteSubscription(asia)
			} else {
				h.wantCode(h.get(semantics.SubscriptionKind, asia.Path), semantics.EntityNotFound)
			}
		})
	}
}

func testPART_8_SubscriptionThatIsDeletedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	asia := subscription("asia")
	prepare := func() {
		_, err := h.broker.EnsureEntity(t.Context(), semantics.SubscriptionKind, asia.Path, semantics.Options{}, nil)
		h.ok(err)
		h.publishToAll(3, "old")
	}
	remove := func(b *broker.Broker) error {
		return b.DeleteEntity(t.Context(), semantics.SubscriptionKind, asia.Path)
	}
	h.endsHalfway(below, prepare, remove, func(steps int64, whole bool) {
		other := h.peer()
		if !whole && steps == 0 {
			h.ok(remove(other))
		} else { // it is gone for others; the repeat deletes the rest
			_, err := other.Peek(t.Context(), asia, 0, 1, semantics.ShowAll)
			h.wantCode(err, semantics.EntityNotFound)
			h.wantCode(remove(other), semantics.EntityNotFound)
		}
		for p := range 3 {
			roster, err := below.Roster(t.Context(), h.Store.(*partitioned.Store).Path(news, p))
			h.ok(err)
			h.same(len(roster.Subscriptions), 2)
		}
		h.publishToAll(3, "new")
		h.createSubscription(asia)
		h.wantOfAll(asia, 0)
		h.wantOfAll(eu, 3, "old", "new")
	})
}

func testPART_8_UpdateThatEndsHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	d := 10 * time.Second
	prepare := func() { d += time.Second }
	update := func(b *broker.Broker) error {
		_, err := b.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{LockDuration: d}, []string{"lockDuration", "deadLetteringOnFilterEvaluationExceptions"})
		return err
	}
	h.endsHalfway(below, prepare, update, func(int64, bool) {
		h.ok(update(h.peer()))
		h.same(h.entityOf(eu).Options.LockDuration, d)
		h.publishToAll(3, "a")
		for _, m := range h.receive(eu, 3) {
			h.same(m.LockedUntil, h.Now().Add(d))
			h.complete(eu, m)
		}
	})
	ofTopic := func(b *broker.Broker) error {
		_, err := b.UpdateEntity(t.Context(), semantics.TopicKind, news, semantics.Options{Status: semantics.StatusDisabled}, []string{"status"})
		return err
	}
	h.endsHalfway(below, func() { h.updateTopic(hasStatus(semantics.StatusActive), "status") }, ofTopic, func(int64, bool) {
		h.ok(ofTopic(h.peer()))
		for range 3 {
			h.wantCode(second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("a")})), semantics.EntityDisabled)
		}
	})
}

func testPART_8_RuleThatIsCreatedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	create := func(b *broker.Broker) error {
		_, _, err := b.CreateRule(t.Context(), eu.Path, doing(always("more"), "SET x = 1"))
		return err
	}
	for _, repeats := range []bool{true, false} {
		h.endsHalfway(below, func() {}, create, func(steps int64, whole bool) {
			isThere, sender := steps > 0 || whole, h.peer() // as with subscriptions
			if repeats {
				sender = h.broker
				err := create(h.peer())
				if isThere {
					h.wantCode(err, semantics.RuleAlreadyExists)
				} else {
					h.ok(err)
				}
			}
			h.publishToAllBy(sender, 3, "a")
			if isThere || repeats {
				h.wantOfAll(eu, 6, "a") // by both rules, in every partition
				h.deleteRule(eu, "more")
			} else {
				h.wantOfAll(eu, 3, "a")
			}
			h.publishToAll(3, "b")
			h.wantOfAll(eu, 3, "b")
		})
	}
}

func testPART_8_RuleThatIsDeletedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	prepare := func() {
		if _, err := h.broker.GetRule(t.Context(), eu.Path, "more"); err != nil {
			h.createRule(eu, doing(always("more"), "SET x = 1"))
		}
	}
	remove := func(b *broker.Broker) error { return b.DeleteRule(t.Context(), eu.Path, "more") }
	h.endsHalfway(below, prepare, remove, func(steps int64, whole bool) {
		isGone := steps > 0 || whole
		if isGone {
			h.wantCode(remove(h.peer()), semantics.RuleNotFound) // and all partitions follow
		}
		h.publishToAll(3, "a")
		if isGone {
			h.wantOfAll(eu, 3, "a")
		} else {
			h.wantOfAll(eu, 6, "a")
		}
	})
}

func testPART_8_DeletionThatEndsHalfway(t *testing.T, h *fixture) {
	h.overPartitions()
	below := withoutPartitions(h.Store)
	prepare := func() {
		h.createNews(partitions(3))
		h.publishToAll(3, "old")
	}
	remove := func(b *broker.Broker) error { return b.DeleteEntity(t.Context(), semantics.TopicKind, news) }
	h.endsHalfway(below, prepare, remove, func(steps int64, whole bool) {
		other := h.peer()
		if !whole && steps == 0 {
			h.ok(remove(other))
		}
		_, err := other.Peek(t.Context(), eu, 0, 1, semantics.ShowAll)
		h.wantCode(err, semantics.EntityNotFound)
		h.wantCode(remove(other), semantics.EntityNotFound)
		h.createNews(partitions(3))
		h.wantOfAll(eu, 0)
		h.publishToAll(3, "new")
		h.wantOfAll(eu, 3, "new")
		h.deleteTopic()
	})
}

// A partition that is lost, with what it had, has the subscriptions again when a call misses it.
func testPART_8_SubscriptionOfAMissingPartition(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.publishToAll(3, "a")
	lost := h.Store.(*partitioned.Store).Path(news, 1)
	h.ok(below.DeleteEntity(t.Context(), semantics.TopicKind, lost))
	h.wantOfAll(eu, 2, "a")
	h.publishToAll(3, "b")
	h.wantOfAll(eu, 3, "b")
	h.ok(below.DeleteEntity(t.Context(), semantics.TopicKind, lost))
	h.createRule(eu, doing(always("more"), "SET x = 1"))
	h.publishToAll(3, "c")
	h.wantOfAll(eu, 6, "c")
}

// lateRoster is a Store in which something happens between reading a partition and what follows.
type lateRoster struct {
	semantics.Store

	between func(path string)
}

func (s lateRoster) SetVersion(ctx context.Context, topic string, from, to int64) error {
	s.between(topic)
	return s.Store.SetVersion(ctx, topic, from, to)
}

func (s lateRoster) CreateSubscription(ctx context.Context, path string, options semantics.Options, rules []semantics.Rule) (semantics.Entity, bool, error) {
	s.between(path)
	return s.Store.CreateSubscription(ctx, path, options, rules)
}

// What a sidecar does late, by what the definition had before, neither brings a rule back nor a subscription.
func testPART_8_LateSidecarsBringNothingBack(t *testing.T, h *fixture) {
	below := h.spreadNews(2)
	isFirst := true
	late := h.newBroker(partitioned.New(lateRoster{below, func(path string) {
		if !isFirst || !semantics.IsPartition(path) {
			return
		}
		if _, _, is := semantics.SplitSubscription(path); is && strings.Contains(path, ".d.") {
			return
		}
		isFirst = false
		h.ok(ignore(h.broker.DeleteRule(t.Context(), eu.Path, everything.Name), semantics.RuleNotFound))
		h.ok(ignore(h.broker.DeleteEntity(t.Context(), semantics.SubscriptionKind, subscription("asia").Path), semantics.EntityNotFound))
	}}))
	_, _, err := late.CreateRule(t.Context(), eu.Path, never("never"))
	h.ok(err)
	h.same(isFirst, false)
	h.publishToAll(2, "a")
	h.wantOfAll(eu, 0)
	h.wantOfAll(us, 2, "a")
	isFirst = true
	_, err = late.CreateEntity(t.Context(), semantics.SubscriptionKind, subscription("asia").Path, semantics.Options{}, nil)
	_ = ignore(err, semantics.EntityNotFound)
	h.same(isFirst, false)
	h.publishToAll(2, "b")
	h.wantOfAll(us, 2, "b")
	for p := range 2 {
		roster, err := below.Roster(t.Context(), h.Store.(*partitioned.Store).Path(news, p))
		h.ok(err)
		h.same(len(roster.Subscriptions), 2)
	}
}

func testPART_8_LevelDeletesWhatIsLeft(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.publishToAll(3, "old")
	f := &failing{Store: below}
	f.left.Store(1)
	killed := partitioned.New(f)
	h.ok(second(killed.Routes(t.Context(), news)))
	err := killed.DeleteEntity(t.Context(), semantics.SubscriptionKind, eu.Path)
	if !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	for p := range 3 {
		path := h.Store.(*partitioned.Store).Path(news, p)
		h.ok(h.broker.Level(t.Context(), path))
		roster, err := below.Roster(t.Context(), path)
		h.ok(err)
		h.same(len(roster.Subscriptions), 1)
	}
	h.ok(h.broker.Level(t.Context(), semantics.PartitionPath(news, 1, 0, 0))) // of a topic that is gone
}

// Each partition of a subscription forwards, as each partition of a queue does.
func testPART_8_SubscriptionsForward(_ *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.createNamed("plain")
	h.createNamed("dead")
	h.updateSubscription(eu, func(o *semantics.Options) { o.ForwardTo = "plain" }, "forwardTo")
	h.updateSubscription(us, func(o *semantics.Options) { o.ForwardDeadLetteredMessagesTo = "dead" }, "forwardDeadLetteredMessagesTo")
	h.publishToAll(3, "a")
	h.deadLetterFrom(us, h.receive(us, 3)...)
	h.sweepPartitions(below)
	h.same(h.runtimeOf(eu).Total()+h.runtimeOf(us).Total(), int64(0))
	h.wantHidden(h.peek(semantics.Source{Path: "plain"})...)
	for _, m := range h.receive(semantics.Source{Path: "dead"}, 3) {
		h.same(m.DeadLetterSource, us.Path)
	}
	h.wantOfAll(semantics.Source{Path: "plain"}, 3, "a")
}

// A session of a subscription lies in one partition, by its id.
func testPART_8_SessionsOfASubscription(t *testing.T, h *fixture) {
	h.spreadNews(3)
	tales := subscription("tales")
	h.createSubscription(tales, func(o *semantics.Options) { o.RequiresSession = true })
	for i := range 4 {
		for _, session := range []string{"a", "b", "c", "d", "e"} {
			m := text(fmt.Sprint(session, i))
			m.SessionID = session
			h.publish(m)
		}
	}
	seen := map[string]bool{}
	for range 5 {
		a, err := h.peer().AcceptSession(t.Context(), tales.Path, broker.AcceptOptions{})
		h.ok(err)
		id := a.Session.ID
		h.same(seen[id], false)
		seen[id] = true
		messages := h.receive(a.Source(), 10)
		h.same(messageIDs(messages), []string{id + "0", id + "1", id + "2", id + "3"})
		h.complete(a.Source(), messages...)
	}
	h.publish(text("none")) // a dead letter there, as it has no session
	h.same(messageIDs(h.peek(deadOf(tales))), []string{"none"})
	h.wantOfAll(us, 1, "a0", "b0", "c0", "d0", "e0", "a1", "b1", "c1", "d1", "e1", "a2", "b2", "c2", "d2", "e2", "a3", "b3", "c3", "d3", "e3", "none")
}

// Messages with one id are in one partition, which remembers it.
func testPART_8_DuplicatesOfATopic(_ *testing.T, h *fixture) {
	h.spreadNews(4, func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
	var want []string
	for i := range 8 {
		id := fmt.Sprint(i)
		first := h.publish(text(id))[0]
		again := h.publishBy(h.peer(), text(id))[0]
		h.same(again, semantics.Stored{SequenceNumber: first.SequenceNumber, Deduplicated: true})
		want = append(want, id)
	}
	h.wantOfAll(eu, 1, want...)
}

// A transaction sends to the partition of the key, where the topic takes a message as if it was due now (TX-13), and
// settles what its subscription has there.
func testPART_8_TransactionsOnATopic(t *testing.T, h *fixture) {
	h.spreadNews(3)
	h.publish(keyed("a", "k"))
	got := h.receiveOne(eu)
	_, err := h.broker.Transact(t.Context(), nil, []semantics.Operation{
		{Source: semantics.Source{Path: news}, IsTopic: true, Messages: []*semantics.Message{keyed("b", "k")}},
		{Verb: semantics.OperationComplete, Source: eu, Tokens: tokensOf(got)},
	})
	h.ok(err)
	h.activate()
	h.wantOfAll(eu, 1, "b")
	h.wantOfAll(us, 1, "a", "b")
}
