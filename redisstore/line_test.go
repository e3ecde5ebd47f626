package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// When a primary that hangs was replaced, sidecars wait at the new one: those that begin to, and those that waited.
func TestRECV_10_WaitsFollowAPrimaryThatHangs(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinels(t)
	t.Cleanup(sentinels.Stop)
	namespace := redistest.Namespace()
	options := redisstore.Options{URL: sentinels.URL, Namespace: namespace}
	sender := redistest.Open(t, options)
	options.ReadTimeout = time.Second // of the connections that the primary leaves hanging
	store := redistest.Open(t, options)
	for _, queue := range []string{"waited", "new"} {
		must(t, makeQueue(t, sender, queue))
	}
	before := watchOf(t, store, "waited")
	defer sentinels.StopPrimary(t)()
	for semantics.CodeOf(second(store.GetEntity(t.Context(), semantics.QueueKind, "new"))) == semantics.StoreUnavailable {
		if t.Context().Err() != nil {
			t.Fatal("no server answers")
		}
	}
	wantAllWoken(t, sentinelSender(t, sentinels, namespace), []waiter{watchOf(t, store, "new"), before}, "new", "waited")
}

// sentinelSender opens a store that has never seen the primary that hangs.
func sentinelSender(t *testing.T, sentinels *redistest.Sentinels, namespace string) *redisstore.Store {
	t.Helper()
	return redistest.Open(t, redisstore.Options{URL: sentinels.URL, Namespace: namespace})
}

// watchOf waits for messages of a queue.
func watchOf(t *testing.T, store *redisstore.Store, queue string) waiter {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	watch, err := store.Watch(ctx, semantics.Source{Path: queue})
	must(t, err)
	t.Cleanup(watch.Close)
	w := waiter{watch, store}
	w.look(t, semantics.Source{Path: queue})
	return w
}

// A server of a cluster that cuts its line and answers nothing then holds up no wait at another server.
func TestRECV_10_AHungServerHoldsUpNoOtherWait(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, append(withoutFailover, "--enable-debug-command", "yes")...)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	options := redisstore.Options{URL: cluster.URL, Namespace: namespace}
	sender := redistest.Open(t, options)
	options.DialTimeout, options.ReadTimeout = hungFor, hungFor
	store := redistest.Open(t, options)
	key := func(queue string) string { return "sb:{" + namespace + "/" + queue + "}:entity" }
	must(t, makeQueue(t, sender, "hung"))
	other := "q"
	for cluster.IsTogether(t, key("hung"), key(other)) {
		other += "q"
	}
	must(t, makeQueue(t, sender, other))
	watchOf(t, store, "hung")
	began := time.Now()
	cluster.Hang(t, key("hung"), hungFor)
	wantAllWoken(t, sender, []waiter{watchOf(t, store, other)}, other)
	if took := time.Since(began); took > hungFor/2 {
		t.Errorf("a wait at another server began after %s", took)
	}
}

const hungFor = 15 * time.Second
