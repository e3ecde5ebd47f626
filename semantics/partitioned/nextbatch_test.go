package partitioned_test

import (
	"context"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// interrupted is a Store in which something happens between the two steps of CompleteAndReceive.
type interrupted struct {
	partitioned.Below
	between func()
}

func (s *interrupted) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register,
) (next semantics.NextBatch, err error) {
	next.Codes, err = s.Complete(ctx, source, tokens)
	s.between()
	next.Batch, next.Failure = s.Below.Receive(ctx, source, limit, register)
	return next, err
}

// A queue that gets partitions between the completion and the receive does not refuse the receive.
func TestPART_1_CompleteAndReceiveFromAQueueThatGetsPartitions(t *testing.T) {
	t.Parallel()
	below, orders := &interrupted{Below: memstore.New()}, semantics.Source{Path: "orders"}
	store, other := partitioned.New(below), partitioned.New(below)
	create := func(partitions int64) {
		options := semantics.DefaultOptions()
		options.Partitions = partitions
		if _, _, err := other.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
			t.Error(err)
		}
		if _, err := other.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "a"}}); err != nil {
			t.Error(err)
		}
	}
	create(1)
	batch, err := store.Receive(t.Context(), orders, 1, semantics.RegisterNever)
	if err != nil {
		t.Fatal(err)
	}
	below.between = func() {
		if err := other.DeleteEntity(t.Context(), semantics.QueueKind, "orders"); err != nil {
			t.Error(err)
		}
		create(4)
	}
	tokens := []semantics.LockToken{batch.Messages[0].LockToken}
	next, err := store.CompleteAndReceive(t.Context(), orders, tokens, 1, semantics.RegisterNever)
	if err != nil || next.Failure != nil || len(next.Batch.Messages) != 1 || next.Codes[0] != "" {
		t.Errorf("got %+v, %v", next, err)
	}
}
