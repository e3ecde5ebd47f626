package partitioned_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// receiving is a Store whose receives the test sees.
type receiving struct {
	partitioned.Below
	receive func(partition int) error // before each
}

func (r *receiving) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	if err := r.receive(semantics.PartitionIn(source.Path)); err != nil {
		return semantics.Batch{}, err
	}
	return r.Below.Receive(ctx, source, limit, register)
}

// Server lays the first 12 partitions on one server and the others on another one.
func (*receiving) Server(_ context.Context, path string) any { return semantics.PartitionIn(path) < 12 }

// spreadOrders returns a Store over below with orders, which has one message in each of 20 partitions.
func spreadOrders(t *testing.T, below partitioned.Below) *partitioned.Store {
	t.Helper()
	store, options := partitioned.New(below), semantics.DefaultOptions()
	options.Partitions = 20
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := store.Send(t.Context(), "orders", []*semantics.Message{{MessageID: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// Each partition may answer with as much as an answer can have, all of which the sidecar holds, so few are asked at the
// same time.
func TestPART_4_EightPartitionsAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held, gate := atomic.Int64{}, make(chan struct{})
		store := spreadOrders(t, &receiving{memstore.New(), func(int) error {
			held.Add(1)
			<-gate
			held.Add(-1)
			return nil
		}})
		done := make(chan int)
		go func() {
			batch, err := store.Receive(t.Context(), semantics.Source{Path: "orders"}, 1000, semantics.RegisterNever)
			if err != nil {
				t.Error(err)
			}
			done <- len(batch.Messages)
		}()
		for _, want := range []int64{1, 8, 8, 3} {
			synctest.Wait()
			n := held.Load()
			if n != want {
				t.Errorf("%d partitions are asked, want %d", n, want)
			}
			for range n {
				gate <- struct{}{}
			}
		}
		if n := <-done; n != 20 {
			t.Errorf("received %d messages, want 20", n)
		}
	})
}

// A server that hangs holds up a receive once, however many partitions it has.
func TestPART_7_OneCallToAServerThatHangs(t *testing.T) {
	t.Parallel()
	calls := atomic.Int64{}
	store := spreadOrders(t, &receiving{memstore.New(), func(partition int) error {
		if partition >= 12 {
			return nil
		}
		calls.Add(1)
		return semantics.Errorf(semantics.StoreUnavailable, "test").With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	}})
	batch, err := store.Receive(t.Context(), semantics.Source{Path: "orders"}, 1000, semantics.RegisterNever)
	if n := calls.Load(); err != nil || len(batch.Messages) != 8 || n != 1 {
		t.Errorf("received %d messages, %v, with %d calls to the server that hangs; want 8 and 1", len(batch.Messages), err, n)
	}
}
