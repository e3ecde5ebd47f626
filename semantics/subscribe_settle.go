package semantics

import (
	"context"
	"sync"
	"time"
)

// Settlement is a settlement of a Broker with its options.
type Settlement func(context.Context, Source, []LockToken) ([]Code, error)

// Settle lets verb act on delivered messages, those of each session by themselves and at the same time, and gives the outcome of
// each. It blocks as long as verb does. A message of a session that was not delivered here, or whose lock is known to be lost, is
// MESSAGE_LOCK_LOST; one of no session is tried.
//
// The errors are those of verb, and INVALID_OPERATION in ReceiveAndDelete mode (RECV-3). When it failed for some sessions and not
// for others, the outcome of the whole is unknown (ERR-6).
func (s *Subscription) Settle(ctx context.Context, tokens []LockToken, verb Settlement) ([]Code, error) {
	if s.removes() {
		return nil, Errorf(InvalidOperation, "messages received for good are not settled").With(DetailEntity, s.source.Path)
	}
	if _, err := checkTokens(s.source, tokens, MaxSettleTokens); err != nil {
		return nil, err
	}
	codes, groups := s.bySource(tokens)
	var (
		mu     sync.Mutex
		failed error
		done   int
	)
	sideBySide(groups, func(g settleGroup) {
		outcome, err := s.settle(ctx, g.source, g.tokens, verb)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			return
		}
		done++
		for i, code := range outcome {
			codes[g.places[i]] = code
		}
	})
	if failed != nil && done > 0 {
		failed = AsError(failed).With(DetailOutcome, OutcomeUnknown)
	}
	if failed != nil {
		return nil, failed
	}
	return codes, nil
}

// settleGroup is what is settled together: messages of one session, or of none.
type settleGroup struct {
	source Source
	tokens []LockToken
	places []int // of the tokens in the call
}

// bySource finds out where messages are to be settled, and gives the codes of those it has no place for.
func (s *Subscription) bySource(tokens []LockToken) ([]Code, []settleGroup) {
	codes, groups, at := make([]Code, len(tokens)), []settleGroup{}, map[Source]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range tokens {
		source, d := s.source, s.unsettled[t]
		switch {
		case d != nil:
			source = d.source
		case s.bySession:
			codes[i] = MessageLockLost
			continue
		default: // it may have been received by a call
		}
		if _, ok := at[source]; !ok {
			at[source] = len(groups)
			groups = append(groups, settleGroup{source: source})
		}
		g := &groups[at[source]]
		g.tokens, g.places = append(g.tokens, t), append(g.places, i)
	}
	return codes, groups
}

func (s *Subscription) settle(ctx context.Context, source Source, tokens []LockToken, verb Settlement) ([]Code, error) {
	codes, err := verb(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, code := range codes {
		switch code {
		case "", MessageLockLost:
			s.drop(tokens[i])
		case SessionLockLost:
			if p := s.sessions[source.SessionLock]; p != nil {
				p.lose()
			}
		default: // the lock holds
		}
	}
	s.freed()
	return codes, nil
}

// forget takes messages off the books that were settled, or that the client does not get.
func (s *Subscription) forget(tokens []LockToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tokens {
		s.drop(t)
	}
	s.freed()
}

// drop takes one message off the books. The caller holds the mutex and calls freed.
func (s *Subscription) drop(t LockToken) {
	d := s.unsettled[t]
	if d == nil {
		return
	}
	delete(s.unsettled, t)
	s.use(d.pump, -1)
	if s.ahead != nil && d.isTaken {
		s.ahead.handled(time.Since(d.since))
	}
	if p := d.pump; p != nil {
		p.lastActive = time.Now()
		p.armIdle()
		poke(p.wake)
	}
}
