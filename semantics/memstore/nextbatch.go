package memstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// CompleteAndReceive implements semantics.Receiver.
func (s *Store) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register,
) (semantics.NextBatch, error) {
	return semantics.CompleteThenReceive(ctx, s, source, tokens, limit, register)
}
