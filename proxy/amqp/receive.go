package amqp

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// receiver is a link on which the client receives.
type receiver struct {
	connection *connection
	link       *engine.Link
	source     semantics.Source
	mode       semantics.Mode
	view       convert.View
	settling   worker[settling]
	memory     *admission.Answers
}

// settledBySender is the snd-settle-mode of a client that receives and deletes.
const settledBySender = 1

func (c *connection) newReceiver(l *engine.Link, source semantics.Source) *receiver {
	r := &receiver{connection: c, link: l, source: source, memory: c.server.Admission.NewAnswers()}
	if mode := l.Request.SenderSettleMode; mode != nil && *mode == settledBySender {
		r.mode = semantics.ReceiveAndDelete
	}
	_, _, isSubscription := semantics.SplitSubscription(source.Path)
	r.view.HasOrigin = isSubscription
	r.settling.run, r.settling.begin = r.settle, c.begin
	return r
}

// attachReceiver accepts a link from a queue, a subscription, or the dead letters of one.
func (c *connection) attachReceiver(l *engine.Link, at node) *frame.Error {
	right := at.right(access.Listen)
	if err := c.permit(right); err != nil {
		return linkError(err)
	}
	source, err := at.source().ParseToReceive()
	if err != nil {
		return linkError(err)
	}
	entity, err := c.entity(l.Context(), at)
	if err != nil {
		return linkError(err)
	}
	filter, hasFilter := sessionFilterOf(l.Request.Source)
	bySession := entity.Options.RequiresSession && source.SubQueue == semantics.MainQueue
	switch {
	case entity.Kind == semantics.TopicKind:
		return &frame.Error{Condition: notAllowed, Description: "a topic has no messages to receive; receive from a subscription"}
	case bySession && !hasFilter:
		return &frame.Error{Condition: notAllowed, Description: sessionRequiredText}
	case hasFilter && !bySession:
		return &frame.Error{Condition: notAllowed, Description: "the entity does not require sessions, so a receiver cannot have one"}
	case hasFilter:
		return c.attachSession(l, source, filter, right)
	}
	r := c.newReceiver(l, source)
	ctx, stop := c.while(l, right)
	defer stop()
	if l.Accept(engine.Accepted{OnSettled: r.onSettled, IsOver: c.isOver}) {
		r.pump(ctx)
	}
	return nil
}

// enough is the wait of a receive that ends, as if its time had expired, when the client wants less.
type enough struct{ withdrawn <-chan struct{} }

// Begin implements semantics.Waits.
func (e enough) Begin() (<-chan struct{}, func(), error) { return e.withdrawn, func() {}, nil }

// Pauses of a receiver after failures that pass.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// pump delivers messages as long as the link lasts.
func (r *receiver) pump(ctx context.Context) {
	pause := firstPause
	for {
		want, ok := r.link.Wanted()
		if !ok {
			return
		}
		count, err := r.receive(ctx, want)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !semantics.AsError(err).Code.Retryable():
			r.link.Close(linkError(err))
			return
		case err != nil:
			wait := max(pause, semantics.AsError(err).RetryAfter)
			if pause = min(2*pause, lastPause); want.IsDraining {
				r.link.Drained()
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		default:
			if pause = firstPause; want.IsDraining && count == 0 {
				r.link.Drained()
			}
		}
	}
}

// receive takes messages that the client wants and delivers them. A client that drains does not wait for any.
func (r *receiver) receive(ctx context.Context, want engine.Want) (count int, err error) {
	if want.Credit == 0 {
		return 0, nil
	}
	options := broker.ReceiveOptions{
		MaxMessages: min(want.Credit, semantics.MaxReceiveMessages), MaxWait: semantics.MaxWait, Mode: r.mode,
	}
	if want.IsDraining {
		options.MaxWait = 0
	}
	defer r.memory.Free()
	ctx = semantics.WithMemory(semantics.WithWaits(ctx, enough{want.Withdrawn}), r.memory)
	taken, err := r.connection.server.Broker.Receive(ctx, r.source, options)
	if err != nil {
		return 0, err
	}
	return r.deliver(ctx, taken), nil
}

// deliver sends messages to the client, and returns how many it has got. Those that it has not are available again at
// once, and not counted (RECV-7).
func (r *receiver) deliver(ctx context.Context, taken *delivery.Delivery) int {
	sent := 0
	for i, m := range taken.Messages {
		d := engine.Delivery{
			Tag: convert.GUID(taken.Tokens()[i]), Payload: convert.Encode(m, r.view),
			IsSettled: r.mode == semantics.ReceiveAndDelete, Ref: lock{taken.Tokens()[i], m.LockedUntil},
		}
		if !r.link.Send(d) {
			break
		}
		sent++
	}
	rest := taken.Split(sent)
	_ = rest.Undelivered(ctx) // what cannot be given back comes again when its lock ends
	if sent == 0 {
		_ = taken.Undelivered(ctx) // which has no messages any more
		return 0
	}
	if !r.link.Flushed() {
		_ = taken.Undelivered(ctx) // as above
		return 0
	}
	r.connection.server.Metrics.Received(ctx, r.source, taken.Messages)
	_ = taken.Delivered(ctx) // what was not removed comes again when its lock ends
	return sent
}
