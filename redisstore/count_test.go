package redisstore_test

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Fifty queues and subscriptions are counted in one round trip, as one by one, also when Redis has forgotten the script.
// Those with several partitions and those that are not there are among them.
func TestCNT_1_ManyAreCountedInOneRoundTrip(t *testing.T) {
	t.Parallel()
	const most = 50
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	below := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: redistest.Namespace()})
	store := partitioned.New(below)
	b := brokerOver(store)
	var paths []string
	for i := range most - 1 {
		name := fmt.Sprintf("q%02d", i)
		created(t, store, semantics.QueueKind, name, 1)
		for range i % 3 {
			if _, err := b.Send(t.Context(), semantics.ToQueue(name), []*semantics.Message{{Body: []byte("x")}}); err != nil {
				t.Fatal(err)
			}
		}
		paths = append(paths, name)
	}
	created(t, store, semantics.TopicKind, "news", 1)
	eu := semantics.SubscriptionPath("news", "eu")
	_, _, err := store.CreateSubscription(t.Context(), eu, semantics.DefaultOptions(), []semantics.Rule{everything})
	must(t, err)
	paths = append(paths, eu)
	equal := func(paths []string) {
		t.Helper()
		all, err := store.Runtimes(t.Context(), paths)
		must(t, err)
		for i, path := range paths {
			want, err := store.Runtime(t.Context(), semantics.QueueKind, path)
			if semantics.CodeOf(err) == semantics.EntityNotFound {
				if all[i] != nil {
					t.Errorf("%s: got %+v, want nothing", path, all[i])
				}
				continue
			}
			must(t, err)
			if all[i] == nil || !reflect.DeepEqual(*all[i], want) {
				t.Errorf("%s: got %+v, want %+v", path, all[i], want)
			}
		}
	}
	equal(paths)
	var trips atomic.Int64
	below.CountRoundTrips(&trips)
	if _, err := store.Runtimes(t.Context(), paths); err != nil || trips.Load() != 1 {
		t.Errorf("%d queues took %d round trips, %v", most, trips.Load(), err)
	}
	created(t, store, semantics.QueueKind, "many", 4)
	equal(append(paths, "many", "nothing"))
	must(t, redistest.Client(t, server.URL).ScriptFlush(t.Context()).Err())
	equal(paths)
}

func created(t *testing.T, store semantics.Store, kind semantics.Kind, name string, partitions int64) {
	t.Helper()
	options := semantics.DefaultOptions()
	options.Partitions, options.EnablePartitioning = partitions, partitions > 1
	_, _, err := store.CreateEntity(t.Context(), kind, name, options)
	must(t, err)
}
