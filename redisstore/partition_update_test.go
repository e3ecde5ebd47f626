package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// The server of one partition of a queue forgets an update, and that of the record does not. The look at all entities
// completes it.
func TestDUR_4_TheLookCompletesAnUpdate(t *testing.T) {
	t.Parallel()
	client, options := rawClient(t), redisstore.Options{Namespace: redistest.Namespace()}
	below := redistest.Open(t, options)
	store := partitioned.New(below)
	b := brokerOver(store)
	t.Cleanup(b.Close)
	queue := semantics.DefaultOptions()
	queue.Partitions = 3
	_, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", queue)
	must(t, err)
	past := redistest.RememberEntity(t, client, options.Namespace, store.Path("orders", 1))
	_, err = store.UpdateEntity(
		t.Context(), semantics.QueueKind, "orders", semantics.Options{LockDuration: 2 * time.Minute}, []string{"lockDuration"},
	)
	must(t, err)
	past.Return(t)
	_, err = below.LookOnce(t.Context(), b, func(entity string, err error) { t.Errorf("%s: %v", entity, err) })
	must(t, err)
	part, err := below.GetEntity(t.Context(), semantics.QueueKind, store.Path("orders", 1))
	must(t, err)
	if part.Options.LockDuration != 2*time.Minute {
		t.Errorf("locks of the partition last %s, want those of the queue", part.Options.LockDuration)
	}
}
