package stream

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
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
	return s.settleAll(tokens, func(groups []account.Group) []settled {
		all := make([]settled, len(groups))
		places := make([]int, len(groups))
		for i := range places {
			places[i] = i
		}
		loop.Each(places, func(i int) { all[i].codes, all[i].err = s.settle(ctx, groups[i], verb) })
		return all
	})
}

// Complete is Settle with Complete of the Broker. On a queue with sessions it takes the messages that follow in the
// same step.
func (s *Subscription) Complete(ctx context.Context, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if !s.bySession {
		return s.Settle(ctx, tokens, s.broker.Complete)
	}
	return s.settleAll(tokens, func(groups []account.Group) []settled { return s.turn(ctx, groups) })
}

// settled is the outcome of what was settled together.
type settled struct {
	codes []semantics.Code
	err   error
}

// settleAll settles messages group by group, as far as they can be settled anywhere.
func (s *Subscription) settleAll(
	tokens []semantics.LockToken, settle func([]account.Group) []settled,
) ([]semantics.Code, error) {
	if s.removes() {
		return nil, semantics.Errorf(semantics.InvalidOperation, "messages received in RECEIVE_AND_DELETE mode are removed already and cannot be settled").
			With(semantics.DetailEntity, s.source.Path)
	}
	if err := semantics.CheckTokens(tokens, semantics.MaxSettleTokens); err != nil {
		return nil, err
	}
	codes, groups := s.account.Settling(tokens)
	var failed error
	done := 0
	for n, outcome := range settle(groups) {
		if outcome.err != nil {
			failed = outcome.err
			continue
		}
		done++
		for i, code := range outcome.codes {
			codes[groups[n].Places[i]] = code
		}
	}
	if failed != nil && done > 0 {
		failed = semantics.AsError(failed).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	}
	if failed != nil {
		return nil, failed
	}
	return codes, nil
}

// turn completes messages of sessions, all in one call, and takes those that follow them.
func (s *Subscription) turn(ctx context.Context, groups []account.Group) []settled {
	turns := make([]semantics.Turn, len(groups))
	follow := make([]int, len(groups))
	if !s.isDraining() {
		follow = s.account.BeginTurns(groups)
	}
	for i, g := range groups {
		turns[i] = semantics.Turn{
			Session: g.Source.SessionLock, Complete: g.Tokens, Receive: follow[i], Register: semantics.RegisterIfEmpty,
		}
	}
	all := make([]settled, len(groups))
	for i, o := range s.broker.Turn(ctx, s.source.Path, turns, s.account) {
		all[i] = settled{o.Codes, o.Err}
		s.account.Settled(groups[i], s.broker.Complete, o.Codes, o.Err)
		if follow[i] == 0 {
			continue
		}
		taken := o.Delivery
		if taken == nil {
			taken = &delivery.Delivery{}
		}
		if session, surplus := s.account.EndTurn(groups[i], taken, o.Recheck); surplus != nil {
			s.giveBackIn(session, surplus)
		}
	}
	return all
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
