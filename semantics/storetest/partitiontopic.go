package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	testPART_8_SubscriptionOfAMissingPartition,
	testPART_8_LateSidecarsBringNothingBack,
	testPART_8_LevelDeletesWhatIsLeft,
	testPART_8_SubscriptionsForward,
}

// spreadNews creates news with partitions, and the subscriptions eu and us, which get every message. From then on the
// test's store knows of partitions. It returns the store below.
func (h *fixture) spreadNews(n int64, changes ...change) partitioned.Below {
	h.t.Helper()
	h.overPartitions()
	below := h.below()
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
	wantRefused := func(err error, name string) {
		t.Helper()
		e := h.wantCode(err, semantics.InvalidOperation)
		h.same(e.Details[semantics.DetailField], name)
		if !strings.Contains(e.Message, "partitions: 1") {
			t.Errorf("%q does not name the next step", e.Message)
		}
	}
	refused := func(kind semantics.Kind, path, name string, c change) {
		t.Helper()
		options := semantics.Options{Partitions: 2}
		c(&options)
		given := []string{name}
		if kind == semantics.TopicKind {
			given = append(given, "partitions")
		}
		_, err := h.broker.CreateEntity(t.Context(), kind, path, options, given)
		wantRefused(err, name)
	}
	refused(semantics.TopicKind, "other", "autoDeleteOnIdle", func(o *semantics.Options) { o.AutoDeleteOnIdle = time.Hour })
	other := subscription("other").Path
	refused(semantics.SubscriptionKind, other, "autoDeleteOnIdle", func(o *semantics.Options) { o.AutoDeleteOnIdle = time.Hour })
	for path, kind := range map[string]semantics.Kind{eu.Path: semantics.SubscriptionKind, news: semantics.TopicKind} {
		_, err := h.broker.UpdateEntity(t.Context(), kind, path, semantics.Options{AutoDeleteOnIdle: time.Hour}, []string{"autoDeleteOnIdle"})
		wantRefused(err, "autoDeleteOnIdle")
	}
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
	s := h.newSidecar(h.Store)
	for i := range 8 {
		done := s.waiting(t.Context(), eu, 5)
		id := fmt.Sprint(i)
		h.publish(text(id))
		h.complete(eu, h.awaitIDs(done, id)...)
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
	partitioned.Below

	between func(path string)
}

func (s lateRoster) SetVersion(ctx context.Context, topic string, from, to int64) error {
	s.between(topic)
	return s.Below.SetVersion(ctx, topic, from, to)
}

func (s lateRoster) CreateSubscription(ctx context.Context, path string, options semantics.Options, rules []semantics.Rule) (semantics.Entity, bool, error) {
	s.between(path)
	return s.Below.CreateSubscription(ctx, path, options, rules)
}

// What a sidecar does late, by what the definition had before, neither brings a rule back nor a subscription.
func testPART_8_LateSidecarsBringNothingBack(t *testing.T, h *fixture) {
	below := h.spreadNews(2)
	var isFirst atomic.Bool
	isFirst.Store(true)
	late := h.newBroker(partitioned.New(lateRoster{below, func(path string) {
		if !semantics.IsPartition(path) {
			return
		}
		if _, _, is := semantics.SplitSubscription(path); is && strings.Contains(path, ".d.") {
			return
		}
		if !isFirst.CompareAndSwap(true, false) {
			return
		}
		h.ok(ignore(h.broker.DeleteRule(t.Context(), eu.Path, everything.Name), semantics.RuleNotFound))
		h.ok(ignore(h.broker.DeleteEntity(t.Context(), semantics.SubscriptionKind, subscription("asia").Path), semantics.EntityNotFound))
	}}))
	_, _, err := late.CreateRule(t.Context(), eu.Path, never("never"))
	h.ok(err)
	h.same(isFirst.Load(), false)
	h.publishToAll(2, "a")
	h.wantOfAll(eu, 0)
	h.wantOfAll(us, 2, "a")
	isFirst.Store(true)
	_, err = late.CreateEntity(t.Context(), semantics.SubscriptionKind, subscription("asia").Path, semantics.Options{}, nil)
	_ = ignore(err, semantics.EntityNotFound)
	h.same(isFirst.Load(), false)
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
	f := &failing{Below: below}
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
