package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// A full Redis brings a partition back that is missing, so that the queue can be drained, and creates no queue.
func TestERR_7_AFullRedisBringsAPartitionBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	below := redistest.Open(t, redisstore.Options{URL: server.URL})
	store, ctx := partitioned.New(below), t.Context()
	_, _, err := store.CreateEntity(ctx, semantics.QueueKind, "orders", spreadOver(3))
	must(t, err)
	for range 3 { // the partitions take turns
		must(t, second(store.Send(ctx, "orders", message(1000))))
	}
	must(t, below.DeleteEntity(ctx, semantics.QueueKind, store.Path("orders", 1)))
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	for _, want := range []int{2, 0} {
		batch, err := store.Receive(ctx, orders, 9, semantics.RegisterNever)
		must(t, err)
		if len(batch.Messages) != want {
			t.Errorf("received %d messages, want %d", len(batch.Messages), want)
		}
		if len(batch.Messages) > 0 {
			must(t, second(store.Complete(ctx, orders, tokensOf(batch.Messages))))
		}
	}
	_, _, err = store.CreateEntity(ctx, semantics.QueueKind, "others", spreadOver(3))
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("create another queue: %v", err)
	}
}

// A full Redis lets a partition follow changes of its topic that its server has forgotten, and takes no new ones.
func TestERR_7_AFullRedisLetsAPartitionFollow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	below := redistest.Open(t, redisstore.Options{URL: server.URL})
	store, ctx := partitioned.New(below), t.Context()
	_, _, err := store.CreateEntity(ctx, semantics.TopicKind, "news", spreadOver(3))
	must(t, err)
	eu, us := semantics.SubscriptionPath("news", "eu"), semantics.SubscriptionPath("news", "us")
	for _, sub := range []string{eu, us} {
		_, _, err = store.CreateSubscription(ctx, sub, semantics.DefaultOptions(), nil)
		must(t, err)
		must(t, second(store.Peek(ctx, semantics.Source{Path: sub}, 0, 1, semantics.ShowAll)))
	}
	lock := func(path string, d time.Duration) error {
		return second(below.UpdateEntity(ctx, semantics.SubscriptionKind, path, semantics.Options{LockDuration: d}, []string{"lockDuration"}))
	}
	must(t, below.DeleteEntity(ctx, semantics.SubscriptionKind, store.Path(eu, 1)))
	must(t, lock(store.Path(us, 1), time.Second))
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	must(t, store.Level(ctx, store.Path("news", 1)))
	for _, sub := range []string{eu, us} {
		part, err := below.GetEntity(ctx, semantics.SubscriptionKind, store.Path(sub, 1))
		must(t, err)
		if part.Options.LockDuration != semantics.DefaultOptions().LockDuration {
			t.Errorf("%s has locks of %s in the partition", sub, part.Options.LockDuration)
		}
	}
	_, _, err = store.CreateSubscription(ctx, semantics.SubscriptionPath("news", "asia"), semantics.DefaultOptions(), nil)
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("create a subscription: %v", err)
	}
	if err := lock(semantics.SubscriptionPath(store.Definition("news"), "us"), time.Second); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("update a subscription: %v", err)
	}
}

// A full server that has forgotten changes of a topic is compared with its record, so that it can be drained.
func TestDUR_4_AFullServerOfAClusterForgetsChanges(t *testing.T) {
	t.Parallel()
	f := newOneForgets(t)
	ctx := t.Context()
	plain, news := f.name("plain", true), f.name("news", false)
	there := "sb:{" + f.namespace + "/" + plain + "}:entity"
	must(t, makeQueue(t, f.changesBelow, plain))
	f.create(semantics.TopicKind, news)
	eu := semantics.SubscriptionPath(news, "eu")
	subscribe := func(path string) {
		t.Helper()
		_, err := f.changer.CreateEntity(ctx, semantics.SubscriptionKind, path, semantics.Options{}, nil)
		must(t, err)
	}
	subscribe(eu)
	must(t, f.publish(news, "before"))
	must(t, second(f.knows.Peek(ctx, semantics.Source{Path: eu}, 0, 1, semantics.ShowAll)))
	forget := f.cluster.Forgetting(t, there)
	subscribe(semantics.SubscriptionPath(news, "us"))
	_, err := f.changes.UpdateEntity(
		ctx, semantics.SubscriptionKind, eu, semantics.Options{LockDuration: 2 * time.Minute}, []string{"lockDuration"},
	)
	must(t, err)
	forget()
	f.cluster.Fill(t, there)
	f.awaitServer(plain)
	batch, err := f.knows.Receive(ctx, semantics.Source{Path: eu}, 9, semantics.RegisterNever)
	f.wantIDs("a full server", batch.Messages, err, "before")
	must(t, second(f.knows.Complete(ctx, semantics.Source{Path: eu}, tokensOf(batch.Messages))))
	f.wantHeld(eu)
}
