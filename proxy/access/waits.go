package access

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// WhileWaiting returns a context for a call that may wait. Its waits end as if their time had expired, when the caller
// in ctx loses a right that the call needs (AUTH-4): what the call has done before it waits keeps its answer, and the
// next call is refused.
func WhileWaiting(ctx context.Context, method string, request proto.Message) context.Context {
	return WhileWaitingWith(ctx, calls[method](request)...) // Check has found it
}

// WhileWaitingWith is WhileWaiting for a call that needs rights.
func WhileWaitingWith(ctx context.Context, rights ...Right) context.Context {
	if _, always := CallerIn(ctx).(AllowAll); always {
		return ctx
	}
	return semantics.WithWaits(ctx, waits{ctx, rights})
}

// waits are the waits of a call of a caller that may lose its rights.
type waits struct {
	ctx    context.Context //nolint:containedctx // of the call, with the waits of its wire
	rights []Right
}

// Begin implements semantics.Waits.
func (w waits) Begin() (enough <-chan struct{}, end func(), err error) {
	ofWire, endWire, err := semantics.BeginWait(w.ctx)
	if err != nil {
		return nil, nil, err
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		again := time.NewTicker(checkPause)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				if Permit(w.ctx, w.rights...) != nil {
					return
				}
			case <-ofWire:
				return
			case <-ended:
				return
			}
		}
	}()
	return over, func() {
		close(ended)
		endWire()
	}, nil
}
