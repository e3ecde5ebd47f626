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
