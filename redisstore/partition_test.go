package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// keepsPartitions is a Store that loses its way to Redis when a partition is to be deleted, or something in one.
type keepsPartitions struct{ *redisstore.Store }

func (k keepsPartitions) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	if semantics.PartitionIn(path) >= 0 {
		return semantics.Errorf(semantics.StoreUnavailable, "test")
	}
	return k.Store.DeleteEntity(ctx, kind, path)
}

func (k keepsPartitions) DeleteForGood(context.Context, semantics.Kind, string) error {
	return semantics.Errorf(semantics.StoreUnavailable, "test")
}

// What a sidecar leaves that was killed while it deleted a queue with partitions, a sweeper deletes, and nothing else.
func TestPART_1_SweeperDeletesPartitionsWithoutQueue(t *testing.T) {
	t.Parallel()
	clock, client := storetest.NewClock(), rawClient(t)
	options := redisstore.Options{Now: clock.Now, Namespace: redistest.Namespace(), MaxEntities: 7}
	below := redistest.Open(t, options)
	store, killed := partitioned.New(below), partitioned.New(keepsPartitions{below})
	queue := semantics.DefaultOptions()
	queue.Partitions = 5
	create := func() {
		_, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "Orders", queue)
		must(t, err)
		for range 5 {
			_, err := store.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "a"}})
			must(t, err)
		}
	}
	look := func() {
		broker := brokerOver(store)
		defer broker.Close()
		_, err := below.LookOnce(t.Context(), broker, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
		must(t, err)
	}
	keys := func() int {
		found, err := client.Keys(t.Context(), "sb:{"+options.Namespace+"/orders*}:log").Result()
		must(t, err)
		return len(found)
	}
	create()
	look()
	if n := keys(); n != 5 {
		t.Fatalf("%d partitions have messages, want 5", n)
	}
	if err := killed.DeleteEntity(t.Context(), semantics.QueueKind, "orders"); !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	if n := keys(); n != 5 {
		t.Fatalf("%d partitions are left with messages, want 5", n)
	}
	clock.Advance(2 * 60 * 1e9)
	look()
	if n := keys(); n != 0 {
		t.Errorf("%d partitions are left, want none", n)
	}
	create()
	look()
	counts, err := store.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if n := keys(); n != 5 || counts.Active != 5 {
		t.Errorf("%d partitions have messages, and the queue has %d; want 5 and 5", n, counts.Active)
	}
}

// One server of a cluster forgets the record of a queue, and those of its partitions do not. Nothing of these is deleted,
// and the queue has it again when it is created with the same options.
func TestDUR_4_ForgottenRecordOfPartitions(t *testing.T) {
	t.Parallel()
	clock, client := storetest.NewClock(), rawClient(t)
	options := redisstore.Options{Now: clock.Now, Namespace: redistest.Namespace()}
	below := redistest.Open(t, options)
	store := partitioned.New(below)
	queue := semantics.DefaultOptions()
	queue.Partitions = 5
	_, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "Orders", queue)
	must(t, err)
	for range 5 {
		_, err := store.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "a"}})
		must(t, err)
	}
	must(t, client.Del(t.Context(), "sb:{"+options.Namespace+"/orders}:entity").Err())
	broker := brokerOver(store)
	defer broker.Close()
	reported := 0
	for range 2 {
		_, err := below.LookOnce(t.Context(), broker, func(string, error) { reported++ })
		must(t, err)
		clock.Advance(2 * 60 * 1e9)
	}
	if reported == 0 {
		t.Error("no look says that the queue was forgotten")
	}
	other := partitioned.New(below)
	_, created, err := other.CreateEntity(t.Context(), semantics.QueueKind, "orders", queue)
	must(t, err)
	counts, err := other.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if !created || counts.Active != 5 {
		t.Errorf("created %v, and the queue has %d messages, want 5", created, counts.Active)
	}
	_, err = store.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "b"}})
	must(t, err)
	batch, err := other.Receive(t.Context(), semantics.Source{Path: "orders"}, 10, semantics.RegisterNever)
	must(t, err)
	if len(batch.Messages) != 6 {
		t.Errorf("received %d, want what both sidecars know of", len(batch.Messages))
	}
}

// A sidecar that is killed while it deletes a topic leaves partitions, and one that deletes a subscription leaves what
// partitions have of it. A sweeper deletes both, and nothing else.
func TestPART_8_SweeperDeletesWhatTopicsLeave(t *testing.T) {
	t.Parallel()
	clock, client := storetest.NewClock(), rawClient(t)
	options := redisstore.Options{Now: clock.Now, Namespace: redistest.Namespace(), MaxEntities: 5}
	below := redistest.Open(t, options)
	store, killed := partitioned.New(below), partitioned.New(keepsPartitions{below})
	broker := brokerOver(store)
	defer broker.Close()
	topic, sub := semantics.DefaultOptions(), semantics.SubscriptionPath("News", "eu")
	topic.Partitions = 3
	create := func() {
		_, _, err := store.CreateEntity(t.Context(), semantics.TopicKind, "News", topic)
		must(t, err)
		_, err = broker.CreateEntity(t.Context(), semantics.SubscriptionKind, sub, semantics.Options{}, nil)
		must(t, err)
		for range 3 {
			_, err := broker.Send(t.Context(), semantics.ToTopic("news"), []*semantics.Message{{MessageID: "a"}})
			must(t, err)
		}
	}
	look := func() {
		clock.Advance(2 * 60 * 1e9)
		_, err := below.LookOnce(t.Context(), broker, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
		must(t, err)
	}
	wants := func(when string, logs, entities int) {
		t.Helper()
		for pattern, want := range map[string]int{"log": logs, "entity": entities} {
			found, err := client.Keys(t.Context(), "sb:{"+options.Namespace+"/news*:"+pattern).Result()
			must(t, err)
			if len(found) != want {
				t.Errorf("%s: %d keys %s, want %d: %v", when, len(found), pattern, want, found)
			}
		}
	}
	create()
	look()
	wants("created", 3, 1+2+3+3) // record, definition with a subscription, partitions with one each
	if err := killed.DeleteEntity(t.Context(), semantics.SubscriptionKind, sub); !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	wants("a subscription is half deleted", 3, 1+1+3+3)
	look()
	wants("a look", 0, 1+1+3)
	must(t, store.DeleteEntity(t.Context(), semantics.TopicKind, "news"))
	create()
	if err := killed.DeleteEntity(t.Context(), semantics.TopicKind, "news"); !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	wants("half deleted", 3, 2+3+3)
	look()
	wants("another look", 0, 0)
	create()
	look()
	wants("created again", 3, 1+2+3+3)
	counts, err := store.Runtime(t.Context(), semantics.SubscriptionKind, sub)
	must(t, err)
	if counts.Active != 3 {
		t.Errorf("the subscription has %d messages, want 3", counts.Active)
	}
}

// A server of a cluster forgets the definition of a topic, and those of its partitions do not. What these have of
// subscriptions stays.
func TestDUR_4_ForgottenDefinition(t *testing.T) {
	t.Parallel()
	client, options := rawClient(t), redisstore.Options{Namespace: redistest.Namespace()}
	below := redistest.Open(t, options)
	store := partitioned.New(below)
	broker := brokerOver(store)
	defer broker.Close()
	topic, sub := semantics.DefaultOptions(), semantics.SubscriptionPath("news", "eu")
	topic.Partitions = 3
	_, _, err := store.CreateEntity(t.Context(), semantics.TopicKind, "news", topic)
	must(t, err)
	create := func() {
		_, err := broker.CreateEntity(t.Context(), semantics.SubscriptionKind, sub, semantics.Options{}, nil)
		must(t, err)
	}
	send := func() {
		for range 3 {
			_, err := broker.Send(t.Context(), semantics.ToTopic("news"), []*semantics.Message{{MessageID: "a"}})
			must(t, err)
		}
	}
	keys := func(pattern string) []string {
		found, err := client.Keys(t.Context(), "sb:{"+options.Namespace+"/news#"+pattern).Result()
		must(t, err)
		return found
	}
	create()
	send()
	must(t, client.Del(t.Context(), keys("*.d.*")...).Err())
	create()
	send()
	if n := len(keys("*:log")); n != 6 {
		t.Errorf("%d logs, want those of the subscription that was forgotten, and of the new one", n)
	}
	messages, err := broker.Peek(t.Context(), semantics.Source{Path: sub}, 1, 10, semantics.ShowAll)
	must(t, err)
	if len(messages) != 3 {
		t.Errorf("%d messages, want those of the new subscription", len(messages))
	}
}

// Older sidecars know only of kinds that they can use: to their scripts the record is no queue.
func TestPART_1_RecordIsNoQueue(t *testing.T) {
	t.Parallel()
	below := redistest.Open(t, redisstore.Options{})
	queue := semantics.DefaultOptions()
	queue.Partitions = 2
	_, _, err := partitioned.New(below).CreateEntity(t.Context(), semantics.QueueKind, "orders", queue)
	must(t, err)
	source := semantics.Source{Path: "orders"}
	calls := map[string]error{}
	_, calls["send"] = below.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "a"}})
	_, calls["receive"] = below.Receive(t.Context(), source, 1, semantics.RegisterNever)
	_, calls["peek"] = below.Peek(t.Context(), source, 0, 1, semantics.ShowAll)
	_, calls["complete"] = below.Complete(t.Context(), source, []semantics.LockToken{semantics.NewLockToken()})
	_, calls["renew"] = below.RenewLocks(t.Context(), source, []semantics.LockToken{semantics.NewLockToken()})
	_, calls["abandon"] = below.Abandon(t.Context(), source, []semantics.LockToken{semantics.NewLockToken()}, semantics.AbandonOptions{})
	_, calls["accept"] = below.AcceptSession(t.Context(), "orders", "a")
	for verb, err := range calls {
		if semantics.CodeOf(err) != semantics.EntityNotFound {
			t.Errorf("%s: got %v, want %s", verb, err, semantics.EntityNotFound)
		}
	}
	topic := queue
	_, _, err = partitioned.New(below).CreateEntity(t.Context(), semantics.TopicKind, "news", topic)
	must(t, err)
	calls = map[string]error{}
	_, calls["routes"] = below.Routes(t.Context(), "news")
	calls["publish"] = below.Publish(t.Context(), "news", 1, [][]semantics.Publication{{{Message: &semantics.Message{MessageID: "a"}}}})[0].Err
	_, _, calls["subscribe"] = below.CreateSubscription(t.Context(), "news/Subscriptions/eu", semantics.DefaultOptions(), nil)
	_, calls["count"] = below.Runtime(t.Context(), semantics.TopicKind, "news")
	_, calls["due"] = below.Due(t.Context(), "news", 1)
	_, _, calls["list"] = below.ListEntities(t.Context(), semantics.SubscriptionKind, "news", "", 1)
	for verb, err := range calls {
		if semantics.CodeOf(err) != semantics.EntityNotFound {
			t.Errorf("%s: got %v, want %s", verb, err, semantics.EntityNotFound)
		}
	}
	if _, created, err := below.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions()); err != nil || created {
		t.Errorf("created %v, %v, although the name is taken", created, err)
	}
}

// The slots are those of Redis.
func TestPART_1_Slots(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	client, namespace := redistest.Client(t, cluster.URL), redistest.Namespace()
	store := redistest.Open(t, redisstore.Options{URL: cluster.URL, Namespace: namespace})
	options := semantics.DefaultOptions()
	options.Partitions = 6
	spread := partitioned.New(store)
	_, _, err := spread.CreateEntity(t.Context(), semantics.QueueKind, "Orders", options)
	must(t, err)
	for p := range 6 {
		path := spread.Path("orders", p)
		slot, of := store.Slot(path)
		want, err := client.ClusterKeySlot(t.Context(), "sb:{"+namespace+"/"+semantics.Fold(path)+"}:entity").Result()
		must(t, err)
		if int(want) != slot || slot*6/of != p {
			t.Errorf("%s is in slot %d, Redis says %d; want one of share %d", path, slot, want, p)
		}
	}
}

// The auditor finds what a queue and its partitions may not be.
func TestTheAuditorOfPartitions(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(raw redis.UniversalClient, record, partition, names string){
		"": func(redis.UniversalClient, string, string, string) {},
		"partition 1 has another max_delivery_count": func(raw redis.UniversalClient, _, partition, _ string) {
			raw.HSet(t.Context(), partition, "max_delivery_count", 3)
		},
		"partition 1 has another lock_duration_ms": func(raw redis.UniversalClient, _, partition, _ string) {
			raw.HSet(t.Context(), partition, "lock_duration_ms", 3)
		},
		"without its queue": func(raw redis.UniversalClient, record, _, _ string) { raw.HSet(t.Context(), record, "incarnation", 3) },
		"partition 2 is missing": func(raw redis.UniversalClient, record, _, _ string) {
			raw.HSet(t.Context(), record, "partitions", 3)
		},
		"or too much": func(raw redis.UniversalClient, record, _, _ string) { raw.HSet(t.Context(), record, "partitions", 1) },
		"partition 1 is missing": func(raw redis.UniversalClient, _, partition, names string) {
			_, rest, _ := strings.Cut(partition, "/")
			name, _, _ := strings.Cut(rest, "}")
			raw.ZRem(t.Context(), names, name)
		},
	} {
		namespace := redistest.Namespace()
		store, raw := partitioned.New(redistest.Open(t, redisstore.Options{Namespace: namespace})), rawClient(t)
		options := semantics.DefaultOptions()
		options.Partitions = 2
		_, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "Orders", options)
		must(t, err)
		tag := "sb:{" + namespace
		damage(raw, tag+"/orders}:entity", tag+"/"+semantics.Fold(store.Path("orders", 1))+"}:entity", tag+"}:names")
		auditor := audit.New(raw, namespace)
		err = errors.Join(auditor.AuditAll(t.Context()), auditor.AuditPartitions(t.Context()))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
