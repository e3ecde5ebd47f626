package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// What queues with several partitions do not offer: transfers and transactions.

// BeginTransfer implements semantics.Transfers.
func (s *Store) BeginTransfer(
	ctx context.Context, source semantics.Source, to semantics.Destination, limit int,
) (transfer semantics.Transfer, err error) {
	err = s.refuse(ctx, source.Path, "forwarding", func() error {
		transfer, err = s.Store.BeginTransfer(ctx, source, to, limit)
		return err
	})
	return transfer, err
}

// BeginResubmission implements semantics.Transfers.
func (s *Store) BeginResubmission(
	ctx context.Context, source semantics.Source, to semantics.Destination, numbers []int64, how semantics.Resubmitting,
) (begun semantics.BegunResubmission, err error) {
	err = s.refuse(ctx, source.Path, "resubmission", func() error {
		begun, err = s.Store.BeginResubmission(ctx, source, to, numbers, how)
		return err
	})
	return begun, err
}

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
