package dapr

import (
	"context"
	"fmt"
	"time"

	"github.com/sidebus/sidebus/proxy/dapr/internal/inflight"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// tooLarge is the outcome of a message that is too large for the Dapr runtime: dead-lettered.
const tooLarge settling.Outcome = "too_large"

// Dead-letter reasons.
const (
	reasonTooLarge = "DaprMessageTooLarge"
	reasonGivenUp  = "DaprDeadLetterTopic"
)

// tooLargeDelay delays a dead letter that is too large for the Dapr runtime.
const tooLargeDelay = time.Hour

func (p *pullStream) abandon(m *inflight.Message, as settling.Outcome, fault string) settling.Settlement {
	return p.abandonFor(p.redeliveryDelay(m), as, fault)
}

func (p *pullStream) abandonFor(delay *time.Duration, as settling.Outcome, fault string) settling.Settlement {
	return settling.Abandon(p.broker, as, delay, fault)
}

// redeliveryDelay returns the delay of the next delivery, which doubles with each failed one. nil: the delay of the
// entity.
func (p *pullStream) redeliveryDelay(m *inflight.Message) *time.Duration {
	delay, most := p.settings.firstRedelivery, max(p.settings.firstRedelivery, p.settings.maxRedelivery)
	if delay == 0 {
		return nil
	}
	failed := m.DeliveryCount - 1
	if m.Source.SubQueue.IsDeadLetters() {
		failed = m.DeadLetterDeliveryCount
	}
	for ; failed > 0 && delay < most; failed-- {
		delay *= 2
	}
	delay = min(delay, most)
	return &delay
}

func (p *pullStream) deadLetter(as settling.Outcome, reason, description string) settling.Settlement {
	return settling.DeadLetter(p.broker, as, broker.DeadLetterOptions{Reason: &reason, Description: &description})
}

func (p *pullStream) tooLarge(m *inflight.Message, bytes int) settling.Settlement {
	if m.Source.SubQueue.IsDeadLetters() {
		delay := tooLargeDelay
		return p.abandonFor(&delay, tooLarge, "")
	}
	return p.deadLetter(
		tooLarge, reasonTooLarge,
		fmt.Sprintf("the message with its metadata is %d bytes, the Dapr runtime accepts %d", bytes, maxDelivery),
	)
}

func (p *pullStream) givenUp() settling.Settlement {
	return p.deadLetter(
		obs.DeadLetter, reasonGivenUp,
		"the Dapr runtime dead-lettered it: the app dropped it, it failed too often, or it is not a valid event",
	)
}

// settleFor settles messages for a reason that the queue has.
func (p *pullStream) settleFor(ctx context.Context, why inflight.Reason, messages []*inflight.Message) {
	var v settling.Settlement
	switch why {
	case inflight.Processed:
		v = settling.Complete()
	case inflight.TimedOut:
		v = p.abandon(messages[0], settling.TimedOut, "no acknowledgment within "+p.settings.handlerTimeout.String())
	case inflight.ConnectionLost:
		v = p.abandonFor(nil, obs.Abandon, "the connection to the Dapr runtime was lost")
	case inflight.Returned:
		v = settling.Release(p.broker, obs.Release)
	}
	p.settleSafely(ctx, v, messages...)
}

// settleSafely is settle that recovers from a panic: then the messages are delivered again when their locks expire.
func (p *pullStream) settleSafely(ctx context.Context, v settling.Settlement, messages ...*inflight.Message) {
	_ = p.recoverPanic(ctx, func(ctx context.Context) error {
		p.settle(ctx, v, messages)
		return nil
	})
}

// settle settles messages of one subscription.
func (p *pullStream) settle(ctx context.Context, v settling.Settlement, messages []*inflight.Message) {
	received := make([]*semantics.Received, len(messages))
	for i, m := range messages {
		received[i] = m.Received
	}
	for i, as := range p.settler.Settle(ctx, messages[0].Sub, messages[0].Source, received, v) {
		p.count(as)
		if v.Fault != "" && as == v.Outcome {
			p.failures.Note(received[i], semantics.Shorten(v.Fault))
		}
	}
}

// count counts a delivery that is over.
func (p *pullStream) count(as settling.Outcome) {
	p.metrics.DaprDeliveries.WithLabelValues(string(as)).Inc()
}
