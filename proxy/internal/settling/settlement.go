package settling

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Outcome is what happened to a delivery, as in metrics: the verb of the settlement, one of these, or one of the
// caller.
type Outcome string

// Outcomes that are not verbs.
const (
	TimedOut  Outcome = "timeout"   // the app did not answer in time: abandoned
	LockLost  Outcome = "lock_lost" // settling found the lock lost
	Unsettled Outcome = "unsettled" // the settlement failed
)

// Settlement is how messages are to be settled.
type Settlement struct {
	Outcome Outcome              // if it succeeds
	Verb    string               // in metrics; empty if nothing is to be settled
	Settle  semantics.Settlement // nil to complete
	Reason  string               // of a dead letter
	Fault   string               // how the app failed the messages, for the log; empty: it did not
}

// Complete removes messages.
func Complete() Settlement {
	return Settlement{Outcome: obs.Complete, Verb: obs.Complete}
}

// Release makes messages available again, uncounted.
func Release(b *broker.Broker, as Outcome) Settlement {
	return Settlement{Outcome: as, Verb: obs.Release, Settle: b.Release}
}

// Abandon makes messages available again after a delay. A delay of nil is that of the entity.
func Abandon(b *broker.Broker, as Outcome, delay *time.Duration, fault string) Settlement {
	options := semantics.AbandonOptions{Delay: delay}
	return Settlement{
		Outcome: as, Verb: obs.Abandon, Fault: fault,
		Settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return b.Abandon(ctx, s, tokens, options)
		},
	}
}

// DeadLetter moves messages to the dead-letter queue.
func DeadLetter(b *broker.Broker, as Outcome, options broker.DeadLetterOptions) Settlement {
	reason := ""
	if options.Reason != nil {
		reason = *options.Reason
	}
	return Settlement{
		Outcome: as, Verb: obs.DeadLetter, Reason: reason,
		Settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return b.DeadLetter(ctx, s, tokens, options)
		},
	}
}

// Defer sets messages aside until they are received by number.
func Defer(b *broker.Broker) Settlement {
	return Settlement{
		Outcome: obs.Defer, Verb: obs.Defer,
		Settle: func(ctx context.Context, s semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return b.Defer(ctx, s, tokens, nil)
		},
	}
}
