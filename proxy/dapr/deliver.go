package dapr

import (
	"context"
	"slices"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc/mem"

	"github.com/sidebus/sidebus/proxy/dapr/internal/inflight"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// handleEvent handles an event of the subscription.
func (p *pullStream) handleEvent(ctx context.Context, sub *stream.Subscription, e stream.Event) {
	switch {
	case e.Delivery != nil:
		p.status.Received()
		p.deliver(ctx, sub, e)
	case e.SessionClosed != nil:
		p.markLocksLost(func(m *inflight.Message) bool { return m.Source.SessionLock == e.SessionClosed.Lock })
	case e.LocksLost != nil:
		p.markLocksLost(func(m *inflight.Message) bool { return slices.Contains(e.LocksLost, m.LockToken) })
	case e.Failure != nil:
		p.logger.WarnContext(ctx, "the Dapr subscription cannot receive at the moment; retrying", "error", e.Failure)
	}
}

// deliver sends the messages of an event, unless the stream is paused. If sending fails, the stream is about to end and
// then releases the message.
func (p *pullStream) deliver(ctx context.Context, sub *stream.Subscription, e stream.Event) {
	sub.Delivered(ctx, e)
	p.metrics.Received(ctx, e.Delivery.Source(), e.Delivery.Messages)
	for _, received := range e.Delivery.Messages {
		m := &inflight.Message{Received: received, Sub: sub, Source: e.Delivery.Source()}
		response := responseOf(p.topic, received)
		if len(response) > maxDelivery {
			p.rejectTooLarge(ctx, m, len(response))
		} else if p.inFlight.Add(m) && p.stream.SendMsg(mem.SliceBuffer(response)) == nil {
			p.inFlight.Sent(m)
		}
	}
}

// markLocksLost notes that the locks of messages are lost.
func (p *pullStream) markLocksLost(isLost func(*inflight.Message) bool) {
	for range p.inFlight.LocksLost(isLost) {
		p.count(settling.LockLost)
	}
}

// handleAck settles a message as the Dapr runtime says. A late acknowledgment has no effect.
func (p *pullStream) handleAck(ctx context.Context, id string, failure *proto.AckMessageError) {
	token, err := semantics.ParseLockToken(id)
	isInFlight := false
	switch {
	case err != nil:
	case failure == nil:
		isInFlight = p.inFlight.Complete(token)
	default:
		isInFlight = p.inFlight.Fail(token, func(m *inflight.Message) {
			p.settleSafely(ctx, p.abandon(m, obs.Abandon, failure.GetMessage()), m)
		})
	}
	if !isInFlight {
		p.logger.DebugContext(ctx, "acknowledgment of an unknown or decided message", "id", semantics.Shorten(id))
	}
}

// rejectTooLarge dead-letters a message that the Dapr runtime cannot receive: sending it would end the stream for good.
// A message that is a dead letter already is delayed instead.
func (p *pullStream) rejectTooLarge(ctx context.Context, m *inflight.Message, bytes int) {
	p.logger.ErrorContext(
		ctx, "a message is too large for the Dapr runtime and is not sent", "sequenceNumber", m.SequenceNumber,
		"messageId", m.MessageID, "bytes", bytes, "limit", maxDelivery,
	)
	p.inFlight.Reject(func() { p.settleSafely(ctx, p.tooLarge(m, bytes), m) })
}

// deadLetterDelivered dead-letters a message that was delivered, because the Dapr runtime publishes it to the
// dead-letter queue of its entity.
func (c *component) deadLetterDelivered(ctx context.Context, topic string, token semantics.LockToken) error {
	p, m := c.registry.find(token)
	if m == nil {
		return semantics.Errorf(semantics.MessageLockLost, "the message is no longer delivered to this runtime; it will be delivered again").
			With(semantics.DetailEntity, semantics.Shorten(topic))
	}
	address, err := sourceOf(topic, p.settings)
	if err != nil {
		return err
	}
	if semantics.Fold(address.Path) != semantics.Fold(m.Source.Path) || m.Source.SubQueue.IsDeadLetters() {
		return semantics.Errorf(semantics.InvalidOperation,
			"%q accepts only messages that a subscription to the same queue or topic dead-letters; set it as deadLetterTopic of that one", semantics.Shorten(topic)).
			With(semantics.DetailEntity, semantics.Shorten(topic))
	}
	codes, err := m.Sub.Settle(ctx, []semantics.LockToken{token}, p.givenUp().Settle)
	if err == nil && !codes[0].Took() {
		err = semantics.Errorf(codes[0], "the message is no longer locked; it will be delivered again").
			With(semantics.DetailEntity, semantics.Shorten(topic))
	}
	if err != nil {
		return err
	}
	p.inFlight.Settled(m)
	p.metrics.Settled(ctx, obs.Settlement{
		Source: m.Source, Verb: obs.DeadLetter, Tokens: []semantics.LockToken{token}, Reason: reasonGivenUp,
	}, codes)
	p.count(obs.DeadLetter)
	return nil
}
