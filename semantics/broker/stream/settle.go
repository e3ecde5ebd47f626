package stream

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// Settle lets verb act on delivered messages, those of each session by themselves and at the same time, and gives the
// outcome of each. It blocks as long as verb does. On a queue with sessions a message that was unsettled when its
// session ended is SESSION_LOCK_LOST (SETTLE-2, SESS-22); any other that is not in hand, and one that came long before,
// is MESSAGE_LOCK_LOST. On other queues it is tried.
//
// The errors are those of verb, and INVALID_OPERATION in ReceiveAndDelete mode (RECV-3). When it failed for some
// sessions and not for others, the outcome of the whole is unknown (ERR-6). What verb itself leaves unknown is repeated
// in the background until it is known or the messages are settled otherwise.
func (s *Subscription) Settle(
	ctx context.Context, tokens []semantics.LockToken, verb semantics.Settlement,
) ([]semantics.Code, error) {
	if s.removes() {
		return nil, semantics.Errorf(semantics.InvalidOperation, "messages received for good are not settled").
			With(semantics.DetailEntity, s.source.Path)
	}
	if err := semantics.CheckTokens(tokens, semantics.MaxSettleTokens); err != nil {
		return nil, err
	}
	codes, groups := s.bySource(tokens)
	var (
		mu     sync.Mutex
		failed error
		done   int
	)
	loop.Each(groups, func(g settleGroup) {
		outcome, err := s.settle(ctx, g, verb)
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
		failed = semantics.AsError(failed).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	}
	if failed != nil {
		return nil, failed
	}
	return codes, nil
}

// settleGroup is what is settled together: messages of one session, or of none.
type settleGroup struct {
	source semantics.Source
	tokens []semantics.LockToken
	places []int        // of the tokens in the call
	books  []*delivered // of those that are on the books
}

// add takes a message into the group. The caller holds the mutex; d is nil for one that is not on the books.
func (g *settleGroup) add(t semantics.LockToken, d *delivered) {
	g.tokens = append(g.tokens, t)
	if d != nil {
		d.settling++
		g.books = append(g.books, d)
	}
}

// bySource finds out where messages are to be settled, and gives the codes of those it has no place for.
func (s *Subscription) bySource(tokens []semantics.LockToken) ([]semantics.Code, []settleGroup) {
	codes, groups, at := make([]semantics.Code, len(tokens)), []settleGroup{}, map[semantics.Source]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range tokens {
		source, d := s.source, s.unsettled[t]
		switch {
		case d != nil:
			source = d.source
		case s.gone.has(t):
			codes[i] = semantics.SessionLockLost
			continue
		case s.bySession:
			codes[i] = semantics.MessageLockLost
			continue
		default: // it may have been received by a call
		}
		if _, ok := at[source]; !ok {
			at[source] = len(groups)
			groups = append(groups, settleGroup{source: source})
		}
		g := &groups[at[source]]
		g.add(t, d)
		g.places = append(g.places, i)
	}
	return codes, groups
}

func (s *Subscription) settle(ctx context.Context, g settleGroup, verb semantics.Settlement) ([]semantics.Code, error) {
	codes, err := verb(ctx, g.source, g.tokens)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range g.books {
		d.settling--
	}
	if err != nil {
		g.noteDoubt(verb, err)
		return nil, err
	}
	for i, code := range codes {
		switch code {
		case "", semantics.MessageLockLost:
			s.drop(g.tokens[i])
		case semantics.SessionLockLost:
			if p := s.sessions[g.source.SessionLock]; p != nil {
				p.lose()
			}
		default: // the lock holds, so there is nothing in doubt
			if d := s.unsettled[g.tokens[i]]; d != nil {
				d.doubt = nil
			}
		}
	}
	s.freed()
	return codes, nil
}

// forget takes messages off the books that were settled, or that the client does not get.
func (s *Subscription) forget(tokens []semantics.LockToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tokens {
		s.drop(t)
	}
	s.freed()
}

// books are the unsettled messages of a subscription, as the broker knows them.
type books struct{ s *Subscription }

// Forget implements Owner.
func (b books) Forget(tokens []semantics.LockToken) { b.s.forget(tokens) }

// drop takes one message off the books. The caller holds the mutex and calls freed.
func (s *Subscription) drop(t semantics.LockToken) {
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
		loop.Poke(p.wake)
	}
}

// goneTokens are the tokens of the last MaxCredits messages that the client had not settled when their sessions ended.
type goneTokens struct {
	order []semantics.LockToken
	set   map[semantics.LockToken]bool
}

func (g *goneTokens) add(t semantics.LockToken) {
	if g.set == nil {
		g.set = map[semantics.LockToken]bool{}
	}
	if len(g.order) == MaxCredits {
		delete(g.set, g.order[0])
		g.order = g.order[1:]
	}
	g.order, g.set[t] = append(g.order, t), true
}

func (g *goneTokens) has(t semantics.LockToken) bool { return g.set[t] }
