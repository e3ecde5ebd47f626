package stream

import (
	"context"
	"sync"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// Settle calls verb for delivered messages and returns the outcome of each. It calls verb for each session separately,
// and concurrently. It blocks as long as verb does. On a queue with sessions a message that was unsettled when its
// session ended is SESSION_LOCK_LOST (SETTLE-2, SESS-22); any other message that is not unsettled, or was delivered
// long before, is MESSAGE_LOCK_LOST. On other queues verb is tried with any message.
//
// The errors are those of verb, and INVALID_OPERATION in ReceiveAndDelete mode (RECV-3). If verb fails for some
// sessions and not for others, the outcome of the whole is unknown (ERR-6). A settlement whose outcome is unknown is
// repeated in the background until it is known or the messages are settled otherwise.
func (s *Subscription) Settle(
	ctx context.Context, tokens []semantics.LockToken, verb semantics.Settlement,
) ([]semantics.Code, error) {
	if s.removes() {
		return nil, semantics.Errorf(semantics.InvalidOperation, "messages received in RECEIVE_AND_DELETE mode are removed already and cannot be settled").
			With(semantics.DetailEntity, s.source.Path)
	}
	if err := semantics.CheckTokens(tokens, semantics.MaxSettleTokens); err != nil {
		return nil, err
	}
	codes, groups := s.account.Settling(tokens)
	var (
		mu     sync.Mutex
		failed error
		done   int
	)
	loop.Each(groups, func(g account.Group) {
		outcome, err := s.settle(ctx, g, verb)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			return
		}
		done++
		for i, code := range outcome {
			codes[g.Places[i]] = code
		}
	})
	if failed != nil && done > 0 {
		failed = semantics.AsError(failed).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	}
	if failed != nil {
		return nil, failed
	}
	return codes, nil
}

func (s *Subscription) settle(
	ctx context.Context, g account.Group, verb semantics.Settlement,
) ([]semantics.Code, error) {
	codes, err := verb(ctx, g.Source, g.Tokens)
	s.account.Settled(g, verb, codes, err)
	return codes, err
}

// resolveDoubts repeats settlements in doubt, which changes nothing if they took effect. So the credits of settled
// messages come back even if the client does nothing, and a session does not wait for a message that is gone. If it
// fails, the next look repeats it.
func (s *Subscription) resolveDoubts() {
	loop.Each(s.account.Doubts(), func(d account.Doubt) { _, _ = s.settle(s.life, d.Group, d.Verb) })
}
