// Package response reports to the Broker whether a response was written, so that the messages or the session in it are
// confirmed or released (RECV-7). The wire calls Begin for each such call, the handler calls SetDelivery or
// SetAcceptance, and the wire calls Finish after writing the response.
package response

import (
	"context"
	"log/slog"
	"sync"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Tracker creates Responses and waits for the work that follows them. It is safe for concurrent use.
type Tracker struct {
	logger *slog.Logger
	work   sync.WaitGroup
}

// NewTracker returns a Tracker.
func NewTracker(logger *slog.Logger) *Tracker { return &Tracker{logger: logger} }

// Wait blocks until all work is done, one round trip to the store at most. It must be called after the last Finish.
func (d *Tracker) Wait() { d.work.Wait() }

// Response is the response of one receive or accept call. It belongs to the goroutine that serves the call.
type Response struct {
	tracker    *Tracker
	delivery   *delivery.Delivery
	deletes    bool // the messages are deleted when the response is written
	acceptance *broker.Acceptance
}

type responseKey struct{}

// Begin returns a Response, and a context that carries it to the handler.
func (d *Tracker) Begin(ctx context.Context) (context.Context, *Response) {
	resp := &Response{tracker: d}
	return context.WithValue(ctx, responseKey{}, resp), resp
}

// SetDelivery sets the messages of the Response in ctx. It panics if the wire has not called Begin.
func SetDelivery(ctx context.Context, delivery *delivery.Delivery, mode semantics.Mode) {
	resp := ctx.Value(responseKey{}).(*Response)
	resp.delivery, resp.deletes = delivery, mode == semantics.ReceiveAndDelete
}

// SetAcceptance sets the session of the Response in ctx. It panics if the wire has not called Begin.
func SetAcceptance(ctx context.Context, acceptance *broker.Acceptance) {
	ctx.Value(responseKey{}).(*Response).acceptance = acceptance
}

// Finish reports whether the response was written. If it was not, Finish releases the messages or the session before it
// returns. Messages in ReceiveAndDelete mode are deleted in a goroutine of the Tracker, so that neither the response
// nor the next call waits for that.
func (s *Response) Finish(ctx context.Context, written bool) {
	if s.acceptance != nil && s.acceptance.Session != nil && !written {
		s.report(
			ctx, "cannot release an undelivered session; it is available when its lock expires", s.acceptance.Undelivered(ctx),
		)
	}
	if s.delivery == nil || len(s.delivery.Messages) == 0 {
		return
	}
	count := slog.Int("messages", len(s.delivery.Messages))
	switch {
	case !written:
		s.report(ctx, "cannot release undelivered messages"+redelivered, s.delivery.Undelivered(ctx), count)
	case s.deletes:
		s.tracker.work.Go(func() {
			s.report(ctx, "cannot delete delivered messages"+redelivered, s.delivery.Delivered(ctx), count)
		})
	default:
		s.report(ctx, "cannot confirm delivered messages"+redelivered, s.delivery.Delivered(ctx), count)
	}
}

const redelivered = "; they will be delivered again when their locks expire"

func (s *Response) report(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	if err != nil {
		s.tracker.logger.LogAttrs(ctx, slog.LevelWarn, what, append(attrs, slog.Any("error", err))...)
	}
}
