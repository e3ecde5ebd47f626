package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// What queues with several partitions do not offer: transactions.

// Transact implements semantics.Transactor.
func (s *Store) Transact(
	ctx context.Context, once *semantics.Once, operations []semantics.Operation,
) semantics.TransactionOutcome {
	outcome := s.Store.Transact(ctx, once, operations)
	if semantics.CodeOf(outcome.Err) != semantics.EntityNotFound {
		return outcome
	}
	for i, o := range operations {
		nothing := func() error { return semantics.NotFound(o.Source.Path) }
		err := s.refuse(ctx, o.Source.Path, "a transaction", nothing)
		if semantics.CodeOf(err) == semantics.InvalidOperation {
			outcome.Err = semantics.RefusedOperation(err, i)
			return outcome
		}
	}
	return outcome
}
