package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// What a Store remembers of a receive whose answer was lost it finds by the lock of the session, as the partition knows
// it.
func TestSESS_25_LostAnswersOverPartitions(t *testing.T) {
	t.Parallel()
	ctx, below := t.Context(), redistest.Open(t, redisstore.Options{})
	store := partitioned.New(below)
	options := semantics.DefaultOptions()
	options.RequiresSession, options.Partitions = true, 5
	_, _, err := store.CreateEntity(ctx, semantics.QueueKind, "orders", options)
	must(t, err)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		for _, body := range []string{"1", "2"} {
			_, err := store.Send(ctx, "orders", []*semantics.Message{part(id, body)})
			must(t, err)
		}
		session, err := store.AcceptSession(ctx, "orders", id)
		must(t, err)
		lock, p := session.Lock.Partition()
		inPartition := semantics.Source{Path: store.Path("orders", p), SessionLock: lock}
		for range 2 {
			o := store.Turn(ctx, "orders", []semantics.Turn{{Session: session.Lock, Receive: 1}})[0]
			must(t, o.Failure)
			got := o.Batch.Messages
			if len(got) != 1 || got[0].MessageID != "1" || got[0].DeliveryCount != 1 {
				t.Fatalf("session %s: got %+v, want message 1 for the first time", id, got)
			}
			below.NoteUnanswered(inPartition, got[0].LockToken.InPartition(p))
		}
		batch, err := store.Receive(ctx, semantics.Source{Path: "orders", SessionLock: session.Lock}, 9, semantics.RegisterNever)
		must(t, err)
		if got := batch.Messages; len(got) != 2 || got[0].MessageID != "1" || got[1].MessageID != "2" {
			t.Fatalf("session %s: got %+v, want both messages in their order", id, got)
		}
	}
}
