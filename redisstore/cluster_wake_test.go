package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// watchEach opens a store on a cluster that waits on some new queues, and one that sends to them.
func watchEach(t *testing.T, cluster *redistest.Cluster, namespace string, queues ...string) (*redisstore.Store, []waiter) {
	t.Helper()
	options := redisstore.Options{URL: cluster.URL, Namespace: namespace}
	sender, store := redistest.Open(t, options), redistest.Open(t, options)
	waiters := make([]waiter, len(queues))
	for i, queue := range queues {
		must(t, makeQueue(t, sender, queue))
		watch, err := store.Watch(t.Context(), semantics.Source{Path: queue})
		must(t, err)
		t.Cleanup(watch.Close)
		waiters[i] = waiter{watch, store}
		waiters[i].look(t, semantics.Source{Path: queue})
	}
	return sender, waiters
}

// wantAllWoken sends to the queues until each waiter was woken.
func wantAllWoken(t *testing.T, sender *redisstore.Store, waiters []waiter, queues ...string) {
	t.Helper()
	for i, queue := range queues {
		late := time.After(20 * time.Second)
		for isWoken := false; !isWoken; {
			_, err := sender.Send(t.Context(), queue, message(1))
			if err != nil && semantics.CodeOf(err) != semantics.StoreUnavailable {
				t.Fatal(err)
			}
			select {
			case <-waiters[i].C():
				isWoken = true
			case <-late:
				t.Fatalf("who waits on %s was not woken", queue)
			case <-time.After(10 * time.Millisecond): // the outcome of the send may be a refusal
			}
		}
	}
}

// A server ends the subscriptions to a slot that leaves it. If the slot is back before the sidecar looks, it subscribes
// again.
func TestASlotThatComesBackWakesWhoWaits(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	sender, waiters := watchEach(t, cluster, namespace, "orders")
	for range 5 { // the last three are between the same two servers
		cluster.MoveSlot(t, "sb:{"+namespace+"/orders}:entity")
	}
	wantAllWoken(t, sender, waiters, "orders")
}

// A lost connection with channels of several slots is replaced by one that has them all.
func TestALostSubscriptionWithSeveralSlotsWakesWhoWaits(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	sender, waiters := watchEach(t, cluster, namespace, trafficQueues...)
	raw := redistest.Client(t, cluster.URL).(*redis.ClusterClient)
	for _, queue := range trafficQueues {
		server, err := raw.MasterForKey(t.Context(), "sb:{"+namespace+"/"+queue+"}:entity")
		must(t, err)
		must(t, server.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
	}
	wantAllWoken(t, sender, waiters, trafficQueues...)
}
