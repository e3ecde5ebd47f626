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
// (RECV-15). All arguments are checked before anything is changed. There may be no token. The call fails as a whole, as
// Complete does, only if nothing was completed, or perhaps all was (outcome "unknown"); a failure of the receive does not
// hide the codes. It blocks as Receive does.
func (b *Broker) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options ReceiveOptions,
) (NextBatch, error) {
	if err := options.check(); err != nil {
		return NextBatch{}, err
	}
	var next NextBatch
	if len(tokens) > 0 {
		var err error
		if next.Codes, err = b.Complete(ctx, source, tokens); err != nil {
			return NextBatch{}, err
		}
	}
	next.Delivery, next.Failure = b.Receive(ctx, source, options)
	if len(tokens) == 0 && next.Failure != nil {
		return NextBatch{}, next.Failure
	}
	return next, nil
}
