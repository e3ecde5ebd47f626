package broker

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// NextBatch is what CompleteAndReceive did.
type NextBatch struct {
	Codes    []semantics.Code   // one for each token, as of Complete
	Delivery *delivery.Delivery // nil if Failure is set
	Failure  error              // why nothing was received, as of Receive
}

// CompleteAndReceive completes the messages behind the tokens and then receives the next ones of the same source
// (RECV-15). All arguments, and the credits of both steps, are checked before anything is changed. There may be no
// token. The call fails as a whole, as Complete does, only if nothing was completed, or perhaps all was (outcome
// "unknown"); a failure of the receive does not hide the codes. It blocks as Receive does.
func (b *Broker) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options ReceiveOptions,
) (NextBatch, error) {
	if len(tokens) == 0 {
		d, err := b.Receive(ctx, source, options)
		return NextBatch{Delivery: d}, err
	}
	source, err := b.checkTokens(source, tokens, semantics.MaxSettleTokens)
	if err != nil {
		return NextBatch{}, err
	}
	if err := options.check(); err != nil {
		return NextBatch{}, err
	}
	if err := b.admit(len(tokens) + callCost); err != nil {
		return NextBatch{}, err
	}
	if b.takesWithCompletion(ctx, source, options) {
		return b.completeAndReceive(ctx, source, tokens, options)
	}
	var next NextBatch
	if next.Codes, err = b.settleFree(ctx, source, tokens, b.store.Complete); err != nil {
		return NextBatch{}, err
	}
	if next.Failure = b.refuseIfDraining(); next.Failure != nil {
		return next, nil
	}
	if !source.SessionLock.IsZero() {
		b.removals.Await(ctx, source.SessionLock)
	}
	next.Delivery, next.Failure = b.receiveAdmitted(ctx, source, options)
	return next, nil
}

// takesWithCompletion reports whether a call may look for its next messages in the same step: nothing has to happen
// between the two, and no earlier receive waits for them (RECV-10).
func (b *Broker) takesWithCompletion(ctx context.Context, source semantics.Source, options ReceiveOptions) bool {
	return source.SessionLock.IsZero() && (options.MaxWait == 0 || !b.waitingLists.isOpen(source)) &&
		b.refuseIfDraining() == nil && semantics.MemoryOf(ctx).Take(0, false) == nil
}

// completeAndReceive does both in one step of the store. If it finds nothing, it goes on as a receive.
func (b *Broker) completeAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options ReceiveOptions,
) (NextBatch, error) {
	done, err := b.store.CompleteAndReceive(
		ctx, source, tokens, options.MaxMessages, b.waitingLists.registerFor(source),
	)
	if err != nil {
		return NextBatch{}, err
	}
	b.held.ended(source, tokens, done.Codes)
	next := NextBatch{Codes: done.Codes, Failure: done.Failure}
	if next.Failure != nil {
		return next, nil
	}
	var messages []*semantics.Received
	if messages, next.Failure = b.handedOut(ctx, source, done.Batch.Messages); next.Failure == nil {
		next.Failure = b.takeMemory(ctx, source, messages)
	}
	isOver := len(messages) > 0 || options.MaxWait == 0 && len(done.Batch.Messages) == 0 && done.Batch.RecheckAfter > 0
	switch {
	case next.Failure != nil:
	case isOver:
		next.Delivery = b.deliver(ctx, source, options, messages)
	default:
		next.Delivery, next.Failure = b.receiveAdmitted(ctx, source, options)
	}
	return next, nil
}
