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
const refusedPause = time.Hour

// stopPatience is how long a store that is down is waited for when the stream has ended.
const stopPatience = 5 * time.Second

// verdict is what is to become of a message.
type verdict struct {
	outcome outcome
	verb    string // in metrics
	settle  semantics.Settlement
	detail  string // why the app has failed it; "": it has not
}

func (p *pull) complete() verdict {
	return verdict{outcome: obs.Complete, verb: obs.Complete, settle: p.broker.Complete}
}

func (p *pull) release() verdict {
	return verdict{outcome: obs.Release, verb: obs.Release, settle: p.broker.Release}
}

func (p *pull) abandon(o *outgoing, as outcome, detail string) verdict {
	return p.abandonFor(p.backOff(o), as, detail)
}

func (p *pull) abandonFor(delay *time.Duration, as outcome, detail string) verdict {
	return verdict{
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
func (p *pull) backOff(o *outgoing) *time.Duration {
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

func (p *pull) deadLetter(as outcome, reason, description string) verdict {
	options := broker.DeadLetterOptions{Reason: &reason, Description: &description}
	return verdict{
		outcome: as,
		verb:    obs.DeadLetter,
		settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return p.broker.DeadLetter(ctx, s, tokens, options)
		},
	}
}

func (p *pull) tooLarge(o *outgoing, bytes int) verdict {
	if o.source.SubQueue.IsDeadLetters() {
		delay := refusedPause
		return p.abandonFor(&delay, tooLarge, "")
	}
	return p.deadLetter(
		tooLarge, reasonTooLarge,
		fmt.Sprintf("with its metadata it is %d bytes, Dapr's runtime takes %d", bytes, maxDelivery),
	)
}

func (p *pull) givenUp() verdict {
	return p.deadLetter(
		obs.DeadLetter, reasonGivenUp,
		"Dapr's runtime gave it up: the app dropped it, failed it for the last time, or it is no event that can be read",
	)
}

// count notes what became of a message.
func (p *pull) count(o *outgoing, verb string, as outcome) {
	p.metrics.Settled(o.source, verb, []semantics.Code{""})
	p.metrics.DaprDeliveries.WithLabelValues(string(as)).Inc()
}

// settleSafely is settle that survives a bug: the messages come again when their locks end.
func (p *pull) settleSafely(ctx context.Context, v verdict, messages ...*outgoing) {
	_ = p.safely(ctx, func(ctx context.Context) error {
		p.settle(ctx, v, messages)
		return nil
	})
}

// settle carries out a verdict on messages of one subscription. A store that is down is waited for: for as long as the
// locks may hold while the stream stands, for a moment when it has ended.
func (p *pull) settle(ctx context.Context, v verdict, messages []*outgoing) {
	life := ctx
	ctx = context.WithoutCancel(ctx)
	if life.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stopPatience)
		defer cancel()
	}
	tokens := make([]semantics.LockToken, len(messages))
	for i, o := range messages {
		tokens[i] = o.LockToken
	}
	wasUnknown := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
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
func (p *pull) settled(v verdict, o *outgoing, code semantics.Code, wasUnknown bool) {
	switch {
	case code == "" || wasUnknown: // or the settlement before has done it (ERR-6)
		p.count(o, v.verb, v.outcome)
		if v.detail != "" {
			p.faults.Note(o.Received, cut(v.detail))
		}
	case v.verb == obs.Release: // there is nothing to give back
	default:
		p.metrics.Settled(o.source, v.verb, []semantics.Code{code})
		p.metrics.DaprDeliveries.WithLabelValues(string(lockLost)).Inc()
	}
}
