package redisstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// upkeep is what a broker does, but for what a test does in its place.
type upkeep struct {
	semantics.Upkeep
	activate func(ctx context.Context, topic string) error
}

func (u upkeep) ActivateDue(ctx context.Context, topic string) error { return u.activate(ctx, topic) }

// sweptTopic is a topic with the subscription eu by Redis' own clock.
func sweptTopic(t *testing.T, change func(*semantics.Options)) *swept {
	t.Helper()
	s := openSwept(t, redisstore.Options{})
	if err := createTopic(t, s); err != nil {
		t.Fatal(err)
	}
	if err := subscribe(t, s, "eu", change); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *swept) newsKey(part string) string { return "sb:{" + s.namespace + "/news}:" + part }

// Scheduled messages of a topic are enqueued on time while nobody looks, never early, by the rules of that time; what
// the copies' lifetimes bring follows on time too.
func TestSCHED_6_TopicActivatedWithoutReceivers(t *testing.T) {
	t.Parallel()
	s := sweptTopic(t, func(o *semantics.Options) {
		o.DefaultMessageTimeToLive, o.DeadLetteringOnMessageExpiration = 300*time.Millisecond, true
	})
	sweeping(t, s.Store)
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace})
	sweeping(t, other) // two at once do no harm
	now, err := s.raw.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	due := now.Add(400 * time.Millisecond).Truncate(time.Millisecond)
	var publications []semantics.Publication
	for _, m := range messagesOf(250, semantics.Message{ScheduledAt: due}) {
		publications = append(publications, semantics.Publication{Message: m})
	}
	if err := publish(t, s, publications...).Err; err != nil {
		t.Fatal(err)
	}
	if err := subscribe(t, s, "late"); err != nil { // which is there in time
		t.Fatal(err)
	}
	await(t, func() bool {
		found, err := s.Runtime(t.Context(), semantics.SubscriptionKind, of("late").Path)
		return err == nil && found.Active == 250
	})
	awaitLength(t, s.raw, s.newsKey("subscriptions/eu:dead_log"), 250)
	found, err := s.Peek(t.Context(), of("late"), 1, 1000, semantics.ShowAll)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if late := m.EnqueuedAt.Sub(due); late < 0 || late > 5*time.Second {
			t.Fatalf("message %d was enqueued %s late", m.SequenceNumber, late)
		}
	}
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "news"); err != nil {
		t.Error(err)
	}
}

// An alarm that was lost with a sidecar is made up for by the look at all entities, of topics and of subscriptions.
func TestSweepMakesUpForLostAlarmsOfTopics(t *testing.T) {
	t.Parallel()
	s := sweptTopic(t, func(*semantics.Options) {})
	life := 10 * time.Millisecond
	short := &semantics.Message{MessageID: "short", TimeToLive: &life}
	later := &semantics.Message{MessageID: "later", ScheduledAt: soon(t, s.raw)}
	if err := publish(t, s, semantics.Publication{Message: short, Copies: copiesOf(short, "eu")}, semantics.Publication{Message: later}).Err; err != nil {
		t.Fatal(err)
	}
	if n := s.raw.ZCard(t.Context(), "sb:{"+s.namespace+"}:alarms").Val(); n != 2 {
		t.Fatalf("%d alarms were set, want those of topic and subscription", n)
	}
	if err := s.raw.Del(t.Context(), "sb:{"+s.namespace+"}:alarms").Err(); err != nil {
		t.Fatal(err)
	}
	sweeping(t, s.Store)
	awaitLength(t, s.raw, s.newsKey("scheduled"), 0)
	awaitLength(t, s.raw, s.newsKey("subscriptions/eu:log"), 1)
	if m := receiveOneOf(t, s, of("eu")); m.MessageID != "later" {
		t.Errorf("left is %q", m.MessageID)
	}
}

// A topic whose messages cannot be activated now keeps a sweeper from nothing else, and is tried again.
func TestSweepGoesOnWhenATopicFails(t *testing.T) {
	t.Parallel()
	s := sweptTopic(t, func(*semantics.Options) {})
	s.create(t, func(*semantics.Options) {})
	later := &semantics.Message{MessageID: "m", ScheduledAt: soon(t, s.raw)}
	if err := publish(t, s, semantics.Publication{Message: later}).Err; err != nil {
		t.Fatal(err)
	}
	awaitDue(t, s, 1)
	life := time.Millisecond
	s.send(t, &semantics.Message{MessageID: "q", TimeToLive: &life})
	for score, name := range []string{"news", "orders"} { // both in one take, the topic first
		s.raw.ZAdd(t.Context(), "sb:{"+s.namespace+"}:alarms", redis.Z{Score: float64(score), Member: name})
	}
	broker := brokerOver(s)
	defer broker.Close()
	ctx, stop := context.WithCancel(t.Context())
	var tries atomic.Int64
	cleared, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.Sweep(ctx, upkeep{Upkeep: broker, activate: func(ctx context.Context, topic string) error {
			if tries.Add(1) > 1 {
				return broker.ActivateDue(ctx, topic)
			}
			<-cleared
			return errors.New("not now")
		}})
	}()
	awaitLength(t, s.raw, s.key("log"), 0)
	close(cleared)
	awaitLength(t, s.raw, s.newsKey("subscriptions/eu:log"), 1)
	if tries.Load() < 2 {
		t.Error("the topic never failed: this proves nothing")
	}
	stop()
	<-done
}
