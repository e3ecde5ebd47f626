package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

func spreadOver(n int64) semantics.Options {
	options := semantics.DefaultOptions()
	options.Partitions = n
	return options
}

// All of a transfer to a topic may arrive in one partition of it, by one script, so the subscriptions of the topic bound
// what it carries (decision 0014).
func TestFWD_1_ATransferToPartitionsIsBounded(t *testing.T) {
	t.Parallel()
	store, ctx := partitioned.New(redistest.Open(t, redisstore.Options{})), t.Context()
	_, _, err := store.CreateEntity(ctx, semantics.TopicKind, "news", spreadOver(2))
	must(t, err)
	for i := range 100 {
		path := semantics.SubscriptionPath("news", fmt.Sprint("s", i))
		_, _, err := store.CreateSubscription(ctx, path, semantics.DefaultOptions(), nil)
		must(t, err)
	}
	source := semantics.DefaultOptions()
	source.ForwardTo = "news"
	_, _, err = store.CreateEntity(ctx, semantics.QueueKind, "orders", source)
	must(t, err)
	for range 30 {
		must(t, second(store.Send(ctx, "orders", message(1))))
	}
	if n := len(begin(t, store, orders, "news", 250).Messages); n != 10 {
		t.Errorf("a transfer to a topic with 100 subscriptions carries %d messages, want 10, for 1000 copies", n)
	}
}
