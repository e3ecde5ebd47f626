package dapr

import (
	"context"
	"fmt"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// outcome is what became of a message, as metrics say it: the verb of the settlement, or one of these.
type outcome string

const (
	timedOut  outcome = "timeout"   // no answer in time: abandoned
	tooLarge  outcome = "too_large" // for Dapr's runtime: a dead letter
	lockLost  outcome = "lock_lost" // it was not this stream's any more
	unsettled outcome = "unsettled" // the settlement failed
)

// Why a message became a dead letter by way of Dapr.
const (
	reasonTooLarge = "DaprMessageTooLarge"
	reasonGivenUp  = "DaprDeadLetterTopic"
)

// refusedPause is how long a dead letter that Dapr's runtime cannot take is left alone.
const tooLargeDelay = time.Hour

// stopPatience is how long a store that is down is waited for when the stream has ended.
const stopTimeout = 5 * time.Second

// verdict is what is to become of a message.
type settlement struct {
	outcome outcome
	verb    string // in metrics
	settle  semantics.Settlement
	detail  string // why the app has failed it; "": it has not
}

func (p *pullStream) complete() settlement {
	return settlement{outcome: obs.Complete, verb: obs.Complete, settle: p.broker.Complete}
}

func (p *pullStream) release() settlement {
	return settlement{outcome: obs.Release, verb: obs.Release, settle: p.broker.Release}
}

func (p *pullStream) abandon(o *outgoing, as outcome, detail string) settlement {
	return p.abandonFor(p.redeliveryDelay(o), as, detail)
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

// backOff gives after which pause a message comes again: twice the last one with each delivery. nil: after that of its
// entity.
func (p *pullStream) redeliveryDelay(o *outgoing) *time.Duration {
	delay, most := p.settings.firstRedelivery, max(p.settings.firstRedelivery, p.settings.maxRedelivery)
	if delay == 0 {
		return nil
	}
	failed := o.DeliveryCount - 1
	if o.source.SubQueue.IsDeadLetters() {
		failed = o.DeadLetterDeliveryCount
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

func (p *pullStream) tooLarge(o *outgoing, bytes int) settlement {
	if o.source.SubQueue.IsDeadLetters() {
		delay := tooLargeDelay
		return p.abandonFor(&delay, tooLarge, "")
	}
	return p.deadLetter(
		tooLarge, reasonTooLarge,
		fmt.Sprintf("with its metadata it is %d bytes, Dapr's runtime takes %d", bytes, maxDelivery),
	)
}

func (p *pullStream) givenUp() settlement {
	return p.deadLetter(
		obs.DeadLetter, reasonGivenUp,
		"Dapr's runtime gave it up: the app dropped it, failed it for the last time, or it is no event that can be read",
	)
}

// count notes what became of a message.
func (p *pullStream) count(o *outgoing, verb string, as outcome) {
	p.metrics.Settled(o.source, verb, []semantics.Code{""})
	p.metrics.DaprDeliveries.WithLabelValues(string(as)).Inc()
}

// settleSafely is settle that survives a bug: the messages come again when their locks end.
func (p *pullStream) settleSafely(ctx context.Context, v settlement, messages ...*outgoing) {
	_ = p.recoverPanic(ctx, func(ctx context.Context) error {
		p.settle(ctx, v, messages)
		return nil
	})
}

// settle carries out a verdict on messages of one subscription. A store that is down is waited for: for as long as the
// locks may hold while the stream stands, for a moment when it has ended.
func (p *pullStream) settle(ctx context.Context, v settlement, messages []*outgoing) {
	life := ctx
	ctx = context.WithoutCancel(ctx)
	if life.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stopTimeout)
		defer cancel()
	}
	tokens := make([]semantics.LockToken, len(messages))
	for i, o := range messages {
		tokens[i] = o.LockToken
	}
	wasUnknown := false
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		codes, err := messages[0].sub.Settle(ctx, tokens, v.settle)
		switch e := semantics.AsError(err); {
		case err == nil:
			for i, code := range codes {
				p.settled(v, messages[i], code, wasUnknown)
			}
			return
		case !e.Code.Retryable() || life.Err() != nil:
			p.metrics.DaprDeliveries.WithLabelValues(string(unsettled)).Add(float64(len(messages)))
			p.logger.WarnContext(ctx, "messages could not be settled; they come again when their locks end",
				"verb", v.verb, "sequenceNumber", messages[0].SequenceNumber, "messages", len(messages), "error", err)
			return
		default:
			wasUnknown = wasUnknown || e.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown
			pause = max(pause, e.RetryAfter)
		}
		select {
		case <-time.After(pause):
		case <-life.Done():
		}
	}
}

// settled notes the outcome of a settlement.
func (p *pullStream) settled(v settlement, o *outgoing, code semantics.Code, wasUnknown bool) {
	switch {
	case code == "" || wasUnknown: // or the settlement before has done it (ERR-6)
		p.count(o, v.verb, v.outcome)
		if v.detail != "" {
			p.failures.Note(o.Received, cut(v.detail))
		}
	case v.verb == obs.Release: // there is nothing to give back
	default:
		p.metrics.Settled(o.source, v.verb, []semantics.Code{code})
		p.metrics.DaprDeliveries.WithLabelValues(string(lockLost)).Inc()
	}
}
