package partitioned_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// withoutRecord is a Store all of whose partitions are to be compared while the server of the records does not answer.
type withoutRecord struct {
	comparing
	asked atomic.Int32 // calls that waited for that server
}

func (*withoutRecord) Server(_ context.Context, path string) any { return semantics.PartitionIn(path) }

func (w *withoutRecord) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if !semantics.IsPartition(path) && w.isAway.Load() {
		w.asked.Add(1)
		return semantics.Entity{}, errAway
	}
	return w.Below.GetEntity(ctx, kind, path)
}

func (w *withoutRecord) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	if err := w.compare(ctx, source.Path); err != nil {
		return semantics.Batch{}, err
	}
	return w.Below.Receive(ctx, source, limit, register)
}

// A server of a record that does not answer holds up one partition, not each of those that are to be compared.
func TestPART_7_OneComparisonWaitsForTheServerOfARecord(t *testing.T) {
	t.Parallel()
	below := &withoutRecord{comparing: comparing{Below: memstore.New()}}
	store, ctx := partitioned.New(below), t.Context()
	options := semantics.DefaultOptions()
	options.Partitions = 64
	if _, _, err := store.CreateEntity(ctx, semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	below.isAway.Store(true)
	receive := func() error {
		_, err := store.Receive(ctx, semantics.Source{Path: "orders"}, 100, semantics.RegisterNever)
		return err
	}
	began := time.Now()
	if err := receive(); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("a receive from partitions that cannot be compared: %v", err)
	}
	if asked, looks := int(below.asked.Load()), 2+int(time.Since(began)/time.Second); asked > looks {
		t.Errorf("%d comparisons waited for the server of the record, want %d at most", asked, looks)
	}
	below.isAway.Store(false)
	for deadline := time.Now().Add(20 * time.Second); receive() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the partitions cannot be received from for good")
		}
	}
}
