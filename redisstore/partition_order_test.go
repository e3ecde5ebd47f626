package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// A partition is missing when a sidecar sends several messages of one key, each with a script of its own, and another
// sidecar creates it in between. The first message, which is sent again, stays the first.
func TestSEND_3_APartitionIsCreatedBetweenTwoScripts(t *testing.T) {
	t.Parallel()
	client, options := rawClient(t), redisstore.Options{Namespace: redistest.Namespace()}
	var missed func()
	options.Observe = func(script, status string, _ time.Duration) {
		if do := missed; do != nil && script == "send" && status == string(semantics.EntityNotFound) {
			missed = nil
			do()
		}
	}
	store := partitioned.New(redistest.Open(t, options))
	queue := semantics.DefaultOptions()
	queue.Partitions = 2
	_, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", queue)
	must(t, err)
	var calls [][]*semantics.Message
	for i := range 3 {
		calls = append(calls, []*semantics.Message{
			{MessageID: fmt.Sprint(i), PartitionKey: "k", Body: []byte(strings.Repeat("x", 200<<10))},
		})
	}
	stored := store.SendEach(t.Context(), "orders", [][]*semantics.Message{{{MessageID: "probe", PartitionKey: "k"}}})
	must(t, stored[0].Err)
	_, p := semantics.PartitionOf(stored[0].Stored[0].SequenceNumber)
	path := store.Path("orders", p)
	past := redistest.RememberEntity(t, client, options.Namespace, path)
	keys, err := client.Keys(t.Context(), "sb:{"+options.Namespace+"/"+path+"}:*").Result()
	must(t, err)
	must(t, client.Del(t.Context(), keys...).Err())
	missed = func() { past.Return(t) }
	numbers := ""
	for _, o := range store.SendEach(t.Context(), "orders", calls) {
		must(t, o.Err)
		own, _ := semantics.PartitionOf(o.Stored[0].SequenceNumber)
		numbers += fmt.Sprint(" ", own)
	}
	if numbers != " 2 3 4" {
		t.Errorf("the messages have the numbers%s, want them in order", numbers)
	}
}
