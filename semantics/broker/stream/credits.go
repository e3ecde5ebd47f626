package stream

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// credits are the account of how many messages the client of a subscription may have. Its fields are under the
// subscription's mutex.
type credits struct {
	granted int             // by the client
	ahead   int             // that may be fetched beyond that (RECV-12)
	used    int             // by unsettled messages, and by receives under way for what they may give
	busy    int             // sessions that use some
	starved []*sessionPump  // that wait for more than they use
	wanted  context.Context //nolint:containedctx // ends when there are fewer than are used
	unwant  context.CancelFunc
}

func (c *credits) init(life context.Context, granted int) {
	c.granted = granted
	c.wanted, c.unwant = context.WithCancel(life)
}

func (c *credits) free() int { return c.granted + c.ahead - c.used }

// SetCredits changes how many messages the client wants to have unsettled, 0 to MaxCredits; those it has stay. With 0
// nothing is delivered and the subscription stands. It does not block. ARGUMENT_OUT_OF_RANGE.
func (s *Subscription) SetCredits(n int) error {
	if n < 0 || n > MaxCredits {
		return semantics.FieldError(semantics.ArgumentOutOfRange, "credits", "is %d, must be 0 to %d", n, MaxCredits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.credits
	c.granted = n
	if s.ahead != nil {
		s.ahead.limit()
	}
	if c.free() < 0 { // what is under way might be more than is wanted now
		c.unwant()
		c.wanted, c.unwant = context.WithCancel(s.life)
	}
	s.freed()
	return nil
}

// use takes credits for a pump, nil for that of a source without sessions. The caller holds the mutex.
func (s *Subscription) use(p *sessionPump, n int) {
	s.credits.used += n
	if p == nil || n == 0 {
		return
	}
	if p.used == 0 {
		s.credits.busy++
	}
	p.used += n
	if p.used == 0 {
		s.credits.busy--
	}
	p.countIdle()
}

// unuse gives credits of a pump back.
func (s *Subscription) unuse(p *sessionPump, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(p, -n)
	s.freed()
}

// places is how many sessions there may be: each is sure of one credit. The caller holds the mutex.
func (s *Subscription) places() int { return min(s.options.MaxSessions, s.credits.granted) }

// kept is how many credits are not for sessions that use some already: one for each that uses none, and one for a
// session to come, so that no session can keep others away. The caller holds the mutex.
func (s *Subscription) kept() int {
	kept := len(s.sessions) - s.credits.busy
	if len(s.sessions) < s.places() {
		kept++
	}
	return kept
}

// share is how many more credits a session may use. The caller holds the mutex.
func (s *Subscription) share(p *sessionPump) int {
	free, kept, own := s.credits.free(), s.kept(), 0
	if p.used == 0 {
		kept, own = kept-1, 1 // one is its own
	}
	return max(min(s.options.SessionInFlight-p.used, free-kept), min(own, free))
}

// freed lets those go on that wait for credits, as many sessions as there are credits for, one after the other. A
// session that was woken and takes none must call it again. The caller holds the mutex.
func (s *Subscription) freed() {
	loop.Poke(s.wake)
	loop.Poke(s.place)
	if s.ahead != nil {
		loop.Poke(s.ahead.wake)
	}
	c := &s.credits
	for n := c.free() - s.kept(); n > 0 && len(c.starved) > 0; n-- {
		loop.Poke(c.starved[0].wake)
		c.starved = c.starved[1:]
	}
}

// starve makes a session wait for credits, behind those that wait already. The caller holds the mutex.
func (s *Subscription) starve(p *sessionPump) {
	if !slices.Contains(s.credits.starved, p) {
		s.credits.starved = append(s.credits.starved, p)
	}
}

// unstarve takes a session out of those that wait for credits. The caller holds the mutex.
func (s *Subscription) unstarve(p *sessionPump) {
	c := &s.credits
	c.starved = slices.DeleteFunc(c.starved, func(other *sessionPump) bool { return other == p })
}
