package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// A deletion that a full Redis took, and that ended halfway, is a deletion: the queue that is created behind it with the
// same options has no messages of before.
func TestPART_1_AFullRedisNotesADeletion(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	below := redistest.Open(t, redisstore.Options{URL: server.URL})
	store, killed := partitioned.New(below), partitioned.New(keepsPartitions{below})
	options := semantics.DefaultOptions()
	options.Partitions = 3
	create := func() bool {
		_, created, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
		must(t, err)
		return created
	}
	create()
	_, err := store.Send(t.Context(), "orders", message(1000))
	must(t, err)
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	if err := killed.DeleteEntity(t.Context(), semantics.QueueKind, "orders"); !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "0")
	if !create() {
		t.Error("the queue was not deleted")
	}
	counts, err := store.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	if counts.Active != 0 {
		t.Errorf("%d messages came back", counts.Active)
	}
}

// The note of the deletion of a subscription lies beside the definition that it was deleted from: whatever the server of
// the topic's record forgets after its slot moved away from that of the definition, what the deletion left in partitions
// goes.
func TestPART_8_TheNoteOfASubscriptionIsBesideItsDefinition(t *testing.T) {
	t.Parallel()
	clock, client := storetest.NewClock(), rawClient(t)
	options := redisstore.Options{Now: clock.Now, Namespace: redistest.Namespace()}
	below := redistest.Open(t, options)
	store, killed := partitioned.New(below), partitioned.New(keepsPartitions{below})
	b := brokerOver(store)
	defer b.Close()
	topic, sub := semantics.DefaultOptions(), semantics.SubscriptionPath("news", "eu")
	topic.Partitions = 3
	_, _, err := store.CreateEntity(t.Context(), semantics.TopicKind, "news", topic)
	must(t, err)
	_, err = b.CreateEntity(t.Context(), semantics.SubscriptionKind, sub, semantics.Options{}, nil)
	must(t, err)
	if err := killed.DeleteEntity(t.Context(), semantics.SubscriptionKind, sub); !semantics.IsOutcomeUnknown(err) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	left := func() int {
		return len(client.Keys(t.Context(), "sb:{"+options.Namespace+"/news#*}:subscriptions/*:entity").Val())
	}
	if n := left(); n != 3 {
		t.Fatalf("%d partitions have the subscription, want 3", n)
	}
	for _, key := range client.Keys(t.Context(), "sb:{"+options.Namespace+"/news}:deleted/*").Val() {
		must(t, client.Del(t.Context(), key).Err())
	}
	clock.Advance(2 * 60 * 1e9)
	_, err = below.LookOnce(t.Context(), b, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
	must(t, err)
	if n := left(); n != 0 {
		t.Errorf("%d partitions still have the subscription", n)
	}
}
