package redisstore_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// rawClient reads keys past the store, so that looking does not do what the sweeper should.
func rawClient(t *testing.T) *redis.Client {
	t.Helper()
	client, is := redistest.Client(t, redistest.URL(t)).(*redis.Client)
	if !is {
		t.Fatal("this test needs a server that has all keys")
	}
	return client
}

// awaitLength waits until a stream has so many messages.
func awaitLength(t *testing.T, client *redis.Client, key string, want int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		got, err := client.XLen(ctx, key).Result()
		if err == nil && got == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s has %d messages, want %d (%v)", key, got, want, err)
		}
	}
}

// sweeping runs the sweeper of a store until the test ends.
func sweeping(t testing.TB, s *redisstore.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	broker := brokerOver(s)
	var done sync.WaitGroup
	done.Go(func() { s.Sweep(ctx, broker) })
	t.Cleanup(func() { cancel(); done.Wait(); broker.Close() })
}

type swept struct {
	*redisstore.Store
	namespace string
	now       func() time.Time // nil: the clock of Redis
	raw       *redis.Client
}

func openSwept(t *testing.T, options redisstore.Options) *swept {
	t.Helper()
	options.Namespace = redistest.NamespaceUntil(t, redistest.URL(t))
	return &swept{Store: redistest.Open(t, options), namespace: options.Namespace, now: options.Now, raw: rawClient(t)}
}

func (s *swept) key(part string) string { return "sb:{" + s.namespace + "/orders}:" + part }

func (s *swept) create(t *testing.T, change func(*semantics.Options)) {
	t.Helper()
	options := semantics.DefaultOptions()
	change(&options)
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
}

func (s *swept) send(t *testing.T, messages ...*semantics.Message) {
	t.Helper()
	if _, err := s.Send(t.Context(), "orders", messages); err != nil {
		t.Fatal(err)
	}
}

func messagesOf(n int, like semantics.Message) []*semantics.Message {
	messages := make([]*semantics.Message, n)
	for i := range messages {
		m := like
		m.MessageID = strconv.Itoa(i)
		messages[i] = &m
	}
	return messages
}

// Scheduled messages are enqueued on time while nobody looks at the queue, and never early.
func TestSCHED_6_ActivatedWithoutReceivers(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	sweeping(t, s.Store)
	now, err := s.raw.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	due := now.Add(400 * time.Millisecond).Truncate(time.Millisecond)
	s.send(t, messagesOf(250, semantics.Message{ScheduledAt: due})...)
	awaitLength(t, s.raw, s.key("log"), 250)
	found, err := s.Peek(t.Context(), orders, 1, 1000, semantics.ShowAll)
	if err != nil {
		t.Fatal(err)
	}
	// how punctual it is when the machine does nothing else the benchmark of schedules measures
	const muchTooLate = 5 * time.Second
	for _, m := range found {
		if late := m.EnqueuedAt.Sub(due); late < 0 || late > muchTooLate {
			t.Fatalf("message %d was enqueued %s late", m.SequenceNumber, late)
		}
	}
}

func TestTTL_20_ExpiredWithoutReceivers(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = true })
	sweeping(t, s.Store)
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace})
	sweeping(t, other) // two at once do no harm
	life := 200 * time.Millisecond
	s.send(t, messagesOf(1000, semantics.Message{TimeToLive: &life})...)
	s.send(t, &semantics.Message{MessageID: "stays"})
	awaitLength(t, s.raw, s.key("log"), 1)
	awaitLength(t, s.raw, s.key("dead_log"), 1000)
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}

// With lazy expiry nothing leaves before somebody looks, and other deadlines are kept all the same.
func TestTTL_20_LazyExpiry(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{LazyExpiry: true})
	s.create(t, func(*semantics.Options) {})
	sweeping(t, s.Store)
	life := 50 * time.Millisecond
	s.send(t, messagesOf(3, semantics.Message{TimeToLive: &life})...)
	now, err := s.raw.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, &semantics.Message{MessageID: "later", ScheduledAt: now.Add(300 * time.Millisecond)})
	awaitLength(t, s.raw, s.key("log"), 4)
	if _, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Fatal(err)
	}
	awaitLength(t, s.raw, s.key("log"), 1)
}

// A lock whose holder is gone ends for good without anybody looking.
func TestLOCK_6_LastDeliveryEndsWithoutReceivers(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(o *semantics.Options) { o.LockDuration, o.MaxDeliveryCount = 200*time.Millisecond, 1 })
	sweeping(t, s.Store)
	s.send(t, &semantics.Message{MessageID: "poison"})
	if _, err := s.Receive(t.Context(), orders, 1, semantics.RegisterNever); err != nil {
		t.Fatal(err)
	}
	awaitLength(t, s.raw, s.key("dead_log"), 1)
}

// The alarm of a sidecar that died before it could set it is found by the look at all entities.
func TestSCHED_6_LostAlarmIsFound(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	now, err := s.raw.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, &semantics.Message{MessageID: "later", ScheduledAt: now.Add(100 * time.Millisecond)})
	if n, err := s.raw.Del(t.Context(), "sb:{"+s.namespace+"}:alarms").Result(); err != nil || n != 1 {
		t.Fatalf("removed %d alarms (%v), want the one", n, err)
	}
	sweeping(t, s.Store)
	awaitLength(t, s.raw, s.key("log"), 1)
}

// The id of a message is forgotten when its window is over, although nobody sends any more (I14: nothing is left).
func TestDUP_4_HistoryGoesByItself(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(o *semantics.Options) {
		o.RequiresDuplicateDetection, o.DuplicateDetectionHistoryTimeWindow = true, 200*time.Millisecond
	})
	sweeping(t, s.Store)
	s.send(t, messagesOf(500, semantics.Message{})...)
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.raw.Exists(ctx, s.key("history"), s.key("history_times")).Val() != 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the history is still there")
		}
	}
}

// An alarm that is set while a sweeper is at work is not swallowed when the sweeper puts its own off.
func TestAlarmSetDuringASweepStays(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := openSwept(t, redisstore.Options{Now: clock.Now})
	s.create(t, func(*semantics.Options) {})
	alarms, ctx := "sb:{"+s.namespace+"}:alarms", t.Context()
	alarm := func() int64 { return int64(s.raw.ZScore(ctx, alarms, "orders").Val()) }

	s.send(t, &semantics.Message{MessageID: "1", ScheduledAt: clock.Now().Add(time.Second)})
	first := alarm()
	if want := clock.Now().Add(time.Second).UnixMilli(); first != want {
		t.Fatalf("the alarm is %d, want %d", first, want)
	}
	clock.Advance(time.Second)
	taken := clock.Now().Add(2 * time.Second).UnixMilli()
	s.raw.ZAdd(ctx, alarms, redis.Z{Score: float64(taken), Member: "orders"}) // as take_alarms does
	if _, err := s.Runtime(ctx, semantics.QueueKind, "orders"); err != nil {  // as sweep does
		t.Fatal(err)
	}
	s.send(t, &semantics.Message{MessageID: "2", ScheduledAt: clock.Now().Add(time.Hour)})
	if got := alarm(); got >= taken {
		t.Fatalf("the alarm is still %d: the sweeper would put it off past the new message", got)
	}
}

// Whoever runs a script learns which messages it made dead letters, and why.
func TestDLQ_24_DeadLettersAreTold(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	told := map[string][]int64{}
	s := openSwept(t, redisstore.Options{Now: clock.Now, DeadLettered: func(entity, cause string, numbers []int64) {
		told[entity+" "+cause] = append(told[entity+" "+cause], numbers...)
	}})
	s.create(t, func(o *semantics.Options) { o.MaxDeliveryCount, o.DeadLetteringOnMessageExpiration = 1, true })
	life := time.Second
	s.send(t, messagesOf(4, semantics.Message{})...)
	s.send(t, messagesOf(2, semantics.Message{TimeToLive: &life})...)
	batch, err := s.Receive(t.Context(), orders, 4, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 4 {
		t.Fatal(batch, err)
	}
	token := func(i int) []semantics.LockToken { return []semantics.LockToken{batch.Messages[i].LockToken} }
	if _, err := s.DeadLetter(t.Context(), orders, token(0), semantics.DeadLetterTexts{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Abandon(t.Context(), orders, token(1), semantics.AbandonOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Complete(t.Context(), orders, token(2)); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour) // the last lock ends, two lifetimes are over
	if _, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Fatal(err)
	}
	want := map[string][]int64{
		"orders Application": {1}, "orders MaxDeliveryCountExceeded": {2, 4}, "orders TTLExpiredException": {5, 6},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// A namespace with a bound takes no entity beyond it, and one more when one was deleted; those it has may be ensured.
func TestQUOTA_1_EntitiesOfANamespace(t *testing.T) {
	t.Parallel()
	s := redistest.Open(t, redisstore.Options{MaxEntities: 2})
	create := func(name string) error {
		_, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, name, semantics.DefaultOptions())
		return err
	}
	for _, name := range []string{"a", "b", "A"} {
		if err := create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := create("c"); semantics.CodeOf(err) != semantics.QuotaExceeded {
		t.Errorf("got %v, want QUOTA_EXCEEDED", err)
	}
	_, _, err := s.CreateEntity(t.Context(), semantics.TopicKind, "c", semantics.DefaultOptions())
	if semantics.CodeOf(err) != semantics.QuotaExceeded { // queues and topics count together
		t.Errorf("a topic: got %v, want QUOTA_EXCEEDED", err)
	}
	if _, err := s.GetEntity(t.Context(), semantics.QueueKind, "c"); semantics.CodeOf(err) != semantics.EntityNotFound {
		t.Errorf("the refused queue: %v", err)
	}
	if err := s.DeleteEntity(t.Context(), semantics.QueueKind, "a"); err != nil {
		t.Fatal(err)
	}
	if err := create("c"); err != nil {
		t.Error(err)
	}
}
