package partitioned_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// uncompared is a Store of servers of which each has the partitions of one number. Partition 0 of the queue stuck must
// be compared, and the server of its record is away.
type uncompared struct{ comparing }

// comparing is a Store in the present history that lets its partitions be compared, while some server may be away.
type comparing struct {
	partitioned.Below
	compare func(ctx context.Context, path string) error
	isAway  atomic.Bool
}

func (c *comparing) ComparedBy(compare func(ctx context.Context, path string) error) {
	c.compare = compare
}

func (*comparing) History(context.Context, string) (string, bool, error) {
	return "present", false, nil
}

func (*comparing) NoteCompared(context.Context, string, string) (bool, error) { return true, nil }

// errAway is the error of a call to the server that is away.
var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "test", RetryAfter: time.Second}

func (*uncompared) Server(_ context.Context, path string) any {
	return fmt.Sprint("server ", semantics.PartitionIn(path))
}

// guard is what comes before each call in a partition.
func (u *uncompared) guard(ctx context.Context, path string) error {
	if semantics.WholePath(path) != "stuck" || semantics.PartitionIn(path) != 0 || !u.isAway.Load() {
		return nil
	}
	return u.compare(ctx, path)
}

func (u *uncompared) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if path == "stuck" && u.isAway.Load() {
		return semantics.Entity{}, errAway
	}
	if err := u.guard(ctx, path); err != nil {
		return semantics.Entity{}, err
	}
	return u.Below.GetEntity(ctx, kind, path)
}

func (u *uncompared) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	if err := u.guard(ctx, source.Path); err != nil {
		return semantics.Batch{}, err
	}
	return u.Below.Receive(ctx, source, limit, register)
}

// A partition that cannot be compared, because the server of its record is away, is skipped. What else its own server
// has is not, because that one answers.
func TestPART_7_OnlyThePartitionThatCannotBeComparedIsSkipped(t *testing.T) {
	t.Parallel()
	below := &uncompared{comparing{Below: memstore.New()}}
	store := partitioned.New(below)
	ctx := t.Context()
	options := semantics.DefaultOptions()
	options.Partitions = 2
	toEach := func(queue string) {
		t.Helper()
		for got := map[int]bool{}; len(got) < 2; {
			stored, err := store.Send(ctx, queue, []*semantics.Message{{MessageID: "m", PartitionKey: fmt.Sprint(len(got), time.Now())}})
			if err != nil {
				t.Fatal(err)
			}
			_, p := semantics.PartitionOf(stored[0].SequenceNumber)
			got[p] = true
		}
	}
	for _, queue := range []string{"stuck", "fine"} {
		if _, _, err := store.CreateEntity(ctx, semantics.QueueKind, queue, options); err != nil {
			t.Fatal(err)
		}
		toEach(queue)
	}
	partitionsOf := func(queue string) map[int]bool {
		t.Helper()
		batch, err := store.Receive(ctx, semantics.Source{Path: queue}, 100, semantics.RegisterNever)
		if err != nil {
			t.Fatal(err)
		}
		found := map[int]bool{}
		for _, m := range batch.Messages {
			_, p := semantics.PartitionOf(m.SequenceNumber)
			found[p] = true
		}
		return found
	}
	below.isAway.Store(true)
	if found := partitionsOf("stuck"); found[0] || !found[1] {
		t.Errorf("a queue that cannot be compared: messages of the partitions %v", found)
	}
	if found := partitionsOf("fine"); !found[0] || !found[1] {
		t.Errorf("another queue on the same server: messages of the partitions %v", found)
	}
	below.isAway.Store(false)
	for deadline := time.Now().Add(20 * time.Second); !partitionsOf("stuck")[0]; {
		if time.Now().After(deadline) {
			t.Fatal("the partition is skipped for good")
		}
	}
}
