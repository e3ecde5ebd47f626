package dapr

import (
	"context"
	"fmt"
	"time"

	"github.com/sidebus/sidebus/proxy/dapr/internal/inflight"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// outcome is what happened to a message, as in metrics: the verb of the settlement, or one of these.
type outcome string

const (
	timedOut  outcome = "timeout"   // not acknowledged in time: abandoned
	tooLarge  outcome = "too_large" // for the Dapr runtime: dead-lettered
	lockLost  outcome = "lock_lost" // settling found the lock lost
	unsettled outcome = "unsettled" // the settlement failed
)

// Dead-letter reasons.
const (
	reasonTooLarge = "DaprMessageTooLarge"
	reasonGivenUp  = "DaprDeadLetterTopic"
)

// tooLargeDelay delays a dead letter that is too large for the Dapr runtime.
const tooLargeDelay = time.Hour

// stopTimeout bounds settling after the stream has ended, while the store is down.
const stopTimeout = 5 * time.Second

// settlement is how a message is to be settled.
type settlement struct {
	outcome outcome
	verb    string // in metrics
	settle  semantics.Settlement
	detail  string // why the app failed the message; "": it did not
}

func (p *pullStream) complete() settlement {
	return settlement{outcome: obs.Complete, verb: obs.Complete, settle: p.broker.Complete}
}

func (p *pullStream) release() settlement {
	return settlement{outcome: obs.Release, verb: obs.Release, settle: p.broker.Release}
}

func (p *pullStream) abandon(m *inflight.Message, as outcome, detail string) settlement {
	return p.abandonFor(p.redeliveryDelay(m), as, detail)
}

func (p *pullStream) abandonFor(delay *time.Duration, as outcome, detail string) settlement {
	return settlement{
		outcome: as,
		verb:    obs.Abandon,
		detail:  detail,
		settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return p.broker.Abandon(ctx, s, tokens, semantics.AbandonOptions{Delay: delay})
		},
	}
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

func (p *pullStream) deadLetter(as outcome, reason, description string) settlement {
	options := broker.DeadLetterOptions{Reason: &reason, Description: &description}
	return settlement{
		outcome: as,
		verb:    obs.DeadLetter,
		settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return p.broker.DeadLetter(ctx, s, tokens, options)
		},
	}
}

func (p *pullStream) tooLarge(m *inflight.Message, bytes int) settlement {
	if m.Source.SubQueue.IsDeadLetters() {
		delay := tooLargeDelay
		return p.abandonFor(&delay, tooLarge, "")
	}
	return p.deadLetter(
		tooLarge, reasonTooLarge,
		fmt.Sprintf("the message with its metadata is %d bytes, the Dapr runtime accepts %d", bytes, maxDelivery),
	)
}

func (p *pullStream) givenUp() settlement {
	return p.deadLetter(
		obs.DeadLetter, reasonGivenUp,
		"the Dapr runtime dead-lettered it: the app dropped it, it failed too often, or it is not a valid event",
	)
}

// count counts a settled message.
func (p *pullStream) count(m *inflight.Message, verb string, as outcome) {
	p.metrics.Settled(m.Source, verb, []semantics.Code{""})
	p.metrics.DaprDeliveries.WithLabelValues(string(as)).Inc()
}

// settleFor settles messages for a reason that the queue has.
func (p *pullStream) settleFor(ctx context.Context, why inflight.Reason, messages []*inflight.Message) {
	var v settlement
	switch why {
	case inflight.Processed:
		v = p.complete()
	case inflight.TimedOut:
		v = p.abandon(messages[0], timedOut, "no acknowledgment within "+p.settings.handlerTimeout.String())
	case inflight.ConnectionLost:
		v = p.abandonFor(nil, obs.Abandon, "the connection to the Dapr runtime was lost")
	case inflight.Returned:
		v = p.release()
	}
	p.settleSafely(ctx, v, messages...)
}

// settleSafely is settle that recovers from a panic: then the messages are delivered again when their locks expire.
func (p *pullStream) settleSafely(ctx context.Context, v settlement, messages ...*inflight.Message) {
	_ = p.recoverPanic(ctx, func(ctx context.Context) error {
		p.settle(ctx, v, messages)
		return nil
	})
}

// settle settles messages of one subscription. While the store is down it retries: as long as the stream is open and
// the locks may hold, or for stopTimeout after the stream has ended.
func (p *pullStream) settle(ctx context.Context, v settlement, messages []*inflight.Message) {
	streamCtx := ctx
	ctx = context.WithoutCancel(ctx)
	if streamCtx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stopTimeout)
		defer cancel()
	}
	tokens := make([]semantics.LockToken, len(messages))
	for i, m := range messages {
		tokens[i] = m.LockToken
	}
	wasUnknown := false
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		codes, err := messages[0].Sub.Settle(ctx, tokens, v.settle)
		switch e := semantics.AsError(err); {
		case err == nil:
			for i, code := range codes {
				p.settled(v, messages[i], code, wasUnknown)
			}
			return
		case !e.Code.Retryable() || streamCtx.Err() != nil:
			p.metrics.DaprDeliveries.WithLabelValues(string(unsettled)).Add(float64(len(messages)))
			p.logger.WarnContext(ctx, "cannot settle messages; they will be delivered again when their locks expire",
				"verb", v.verb, "sequenceNumber", messages[0].SequenceNumber, "messages", len(messages), "error", err)
			return
		default:
			wasUnknown = wasUnknown || e.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown
			pause = max(pause, e.RetryAfter)
		}
		select {
		case <-time.After(pause):
		case <-streamCtx.Done():
		}
	}
}

// settled counts the outcome of a settlement.
func (p *pullStream) settled(v settlement, m *inflight.Message, code semantics.Code, wasUnknown bool) {
	switch {
	case code == "" || wasUnknown: // a previous attempt with unknown outcome has settled it (ERR-6)
		p.count(m, v.verb, v.outcome)
		if v.detail != "" {
			p.failures.Note(m.Received, cut(v.detail))
		}
	case v.verb == obs.Release: // the lock is lost, so it is released already
	default:
		p.metrics.Settled(m.Source, v.verb, []semantics.Code{code})
		p.metrics.DaprDeliveries.WithLabelValues(string(lockLost)).Inc()
	}
}
