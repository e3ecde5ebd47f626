// Package handover tells the Broker what became of what it handed out, the messages of a receive or a session that was
// accepted: whether the answer went out or not (RECV-7). The wire makes a Slot for each such call, the handler puts the
// Delivery or the Acceptance into it, and the wire ends the Slot once it has tried to write the answer.
package response

import (
	"context"
	"log/slog"
	"sync"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Desk makes Slots and waits for the work that follows them. It is safe for concurrent use.
type Tracker struct {
	logger *slog.Logger
	work   sync.WaitGroup
}

// NewDesk makes a Desk.
func NewTracker(logger *slog.Logger) *Tracker { return &Tracker{logger: logger} }

// Wait blocks until all work that was begun is done, each for one round trip to the store at most. It must be called
// when no Slot can end any more.
func (d *Tracker) Wait() { d.work.Wait() }

// Slot takes the Delivery of one receive, or one Acceptance. It belongs to the goroutine that serves the call.
type Response struct {
	tracker    *Tracker
	delivery   *delivery.Delivery
	deletes    bool // the messages are removed when the answer is out
	acceptance *broker.Acceptance
}

type responseKey struct{}

// Open makes a Slot and puts it into a context for the handler to find.
func (d *Tracker) Begin(ctx context.Context) (context.Context, *Response) {
	resp := &Response{tracker: d}
	return context.WithValue(ctx, responseKey{}, resp), resp
}

// Put lays a Delivery into the Slot of ctx. It panics when the wire has opened none, since nobody would end it.
func SetDelivery(ctx context.Context, delivery *delivery.Delivery, mode semantics.Mode) {
	resp := ctx.Value(responseKey{}).(*Response)
	resp.delivery, resp.deletes = delivery, mode == semantics.ReceiveAndDelete
}

// PutSession lays an Acceptance into the Slot of ctx, as Put does.
func SetAcceptance(ctx context.Context, acceptance *broker.Acceptance) {
	ctx.Value(responseKey{}).(*Response).acceptance = acceptance
}

// End says whether the answer was written. An answer that was not gives its messages or its session back before End
// returns, since nobody waits for it any more. Messages in ReceiveAndDelete mode are removed in a goroutine of the
// Desk, so that the answer, or the next call on the connection, need not wait. What fails here comes back when its lock
// ends.
func (s *Response) Finish(ctx context.Context, written bool) {
	if s.acceptance != nil && s.acceptance.Session != nil && !written {
		s.report(
			ctx, "giving back an unsent session failed; it is free when its lock ends", s.acceptance.Undelivered(ctx),
		)
	}
	if s.delivery == nil || len(s.delivery.Messages) == 0 {
		return
	}
	count := slog.Int("messages", len(s.delivery.Messages))
	switch {
	case !written:
		s.report(ctx, "giving back unsent messages"+comesBack, s.delivery.Undelivered(ctx), count)
	case s.deletes:
		s.tracker.work.Go(func() { s.report(ctx, "removing sent messages"+comesBack, s.delivery.Delivered(ctx), count) })
	default:
		s.report(ctx, "confirming sent messages"+comesBack, s.delivery.Delivered(ctx), count)
	}
}

const comesBack = " failed; they come back when their locks end"

func (s *Response) report(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	if err != nil {
		s.tracker.logger.LogAttrs(ctx, slog.LevelWarn, what, append(attrs, slog.Any("error", err))...)
	}
}
