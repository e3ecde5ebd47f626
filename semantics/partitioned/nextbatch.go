package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// CompleteAndReceive implements semantics.Receiver. With several partitions it is two calls, as the next messages may
// be in others than the completed ones. So it is if the queue is another one before the receive: that finds nothing by
// what was known, and is run again by what the queue is now.
func (s *Store) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register,
) (next semantics.NextBatch, err error) {
	isReceived := false
	err = s.on(ctx, source.Path, func() error {
		next, err = s.Store.CompleteAndReceive(ctx, source, tokens, limit, register)
		isReceived, next.Failure = semantics.CodeOf(next.Failure) != semantics.EntityNotFound, named(next.Failure)
		return err
	}, func(w *whole) error {
		next.Codes, err = eachToken(ctx, s, w, source, tokens, semantics.CodeOf,
			func(source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
				return s.Store.Complete(ctx, source, tokens)
			})
		isReceived = false
		return err
	})
	if err == nil && !isReceived {
		next.Batch, next.Failure = s.Receive(ctx, source, limit, register)
	}
	return next, err
}
