package settling

import (
	"context"
	"log/slog"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// StopTimeout is how long a settlement may take after the deliveries have ended.
const StopTimeout = 5 * time.Second

// Subscription is what settling needs of a stream.Subscription.
type Subscription interface {
	Settle(ctx context.Context, tokens []semantics.LockToken, verb semantics.Settlement) ([]semantics.Code, error)
	Complete(ctx context.Context, tokens []semantics.LockToken) ([]semantics.Code, error)
}

// Settler settles messages, counts them and logs what cannot be settled. It is safe for concurrent use.
type Settler struct {
	metrics *obs.Metrics
	logger  *slog.Logger
	retries retryLog
}

// NewSettler returns the Settler of one source.
func NewSettler(metrics *obs.Metrics, logger *slog.Logger) *Settler {
	return &Settler{metrics: metrics, logger: logger, retries: retryLog{logger: logger}}
}

// Settle settles messages of one subscription and returns the outcome of each. It blocks.
//
// While the store is down it retries, without a limit of its own: as long as the lock holds, giving up would deliver a
// message again that the app has processed, and when the lock has expired, the first answer of the store ends it. When
// deliveries ends, it tries again if it is waiting, and returns within StopTimeout even if the store does not
// answer, so that it never blocks a stop.
func (s *Settler) Settle(
	deliveries context.Context, sub Subscription, source semantics.Source, messages []*semantics.Received,
	v Settlement,
) []Outcome {
	ctx, cancel := withStopTimeout(s.metrics.Traces.Begin(deliveries))
	defer cancel()
	tokens := make([]semantics.LockToken, len(messages))
	for i, m := range messages {
		tokens[i] = m.LockToken
	}
	var pause Backoff
	retried := retriedSettlement{log: &s.retries}
	defer retried.end(ctx)
	for wasUnknown := false; ; {
		codes, err := v.on(ctx, sub, tokens)
		if err == nil {
			retried.hasSucceeded = true
			s.metrics.Traces.Settled(ctx, source, v.Verb, tokens, codes, v.Reason)
			return s.outcomes(source, v, codes, wasUnknown)
		}
		e := semantics.AsError(err)
		if !e.Code.Retryable() || deliveries.Err() != nil {
			s.logger.WarnContext(ctx, "cannot settle messages; they will be delivered again when their locks expire",
				"verb", v.Verb, "sequenceNumber", messages[0].SequenceNumber, "messages", len(messages), "error", err)
			return repeat(Unsettled, len(messages))
		}
		retried.fail(ctx, v, e)
		wasUnknown = wasUnknown || semantics.IsOutcomeUnknown(e)
		select {
		case <-time.After(min(max(pause.Next(), e.RetryAfter), MaxBackoff)):
		case <-deliveries.Done():
		}
	}
}

// on settles messages of a subscription. Its Complete also takes the next messages of their sessions.
func (v Settlement) on(
	ctx context.Context, sub Subscription, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	if v.Verb == obs.Complete {
		return sub.Complete(ctx, tokens)
	}
	return sub.Settle(ctx, tokens, v.Settle)
}

// outcomes counts what the store answered.
func (s *Settler) outcomes(
	source semantics.Source, v Settlement, codes []semantics.Code, wasUnknown bool,
) []Outcome {
	all := repeat(v.Outcome, len(codes))
	for i, code := range codes {
		switch {
		case code.Took(), wasUnknown: // a previous attempt with unknown outcome has settled it (ERR-6)
			s.metrics.CountSettled(source, v.Verb, []semantics.Code{""})
		case v.Verb == obs.Release: // the lock is lost, so it is released already
		default:
			s.metrics.CountSettled(source, v.Verb, []semantics.Code{code})
			all[i] = LockLost
		}
	}
	return all
}

func repeat(o Outcome, n int) []Outcome {
	all := make([]Outcome, n)
	for i := range all {
		all[i] = o
	}
	return all
}

// withStopTimeout returns a context that ends StopTimeout after another one.
func withStopTimeout(deliveries context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(deliveries))
	release := context.AfterFunc(deliveries, func() {
		select {
		case <-time.After(StopTimeout):
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		release()
		cancel()
	}
}
