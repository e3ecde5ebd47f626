package account

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// credits are how many messages the client may have.
type credits struct {
	granted int             // by the client
	ahead   int             // that may be fetched beyond that (RECV-12)
	used    int             // by unsettled messages, and by receives under way for what they may return
	busy    int             // sessions that use some
	staying int             // of them, that are not to be given up
	starved []*Session      // that wait for more than they use
	wanted  context.Context //nolint:containedctx // ends when there are fewer than are used
	unwant  context.CancelFunc
}

func (c *credits) free() int { return c.granted + c.ahead - c.used }

// Grant changes how many credits the client grants.
func (a *Account) Grant(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.credits
	c.granted = n
	if a.ahead != nil {
		a.ahead.limit()
	}
	if c.free() < 0 { // what is under way might be more than is wanted now
		c.unwant()
		c.wanted, c.unwant = context.WithCancel(a.life)
		a.changeAll()
	}
	a.freed()
}

// UseAll takes all credits, or as many as one receive may ask for, for a source without sessions; none while the Broker
// drains. It also returns how many messages are unsettled.
func (a *Account) UseAll(isDraining bool) (n, unsettled int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ahead != nil {
		a.ahead.limit()
	}
	if !isDraining {
		n = max(min(a.credits.free(), semantics.MaxReceiveMessages), 0)
		a.use(nil, n)
	}
	return n, len(a.unsettled)
}

// Unuse frees credits of a source without sessions.
func (a *Account) Unuse(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.use(nil, -n)
	a.freed()
}

// Returned notes that the surplus of a session, so many messages, was given back.
func (a *Account) Returned(p *Session, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.isReturned = false
	a.use(p, -n)
	p.change()
	a.freed()
}

// WhileWanted calls cancel as soon as the client wants fewer messages than are under way, unless done is called first.
func (a *Account) WhileWanted(cancel context.CancelFunc) (done func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.credits.free() < 0 {
		cancel()
	}
	return context.AfterFunc(a.credits.wanted, cancel)
}

// use takes credits for a session, or with nil for a source without sessions.
func (a *Account) use(p *Session, n int) {
	a.credits.used += n
	if p == nil || n == 0 {
		return
	}
	before := p.used
	p.used += n
	switch {
	case before == 0:
		a.countBusy(p, 1)
	case p.used == 0:
		a.countBusy(p, -1)
	}
	p.countIdle()
}

func (a *Account) countBusy(p *Session, n int) {
	a.credits.busy += n
	if p.leaving == nil {
		a.credits.staying += n
	}
}

// places is how many sessions there may be: each is sure of one credit.
func (a *Account) places() int { return min(a.MaxSessions, a.credits.granted) }

// kept is how many credits are not for sessions that use some already: one for each that uses none, and one for a
// session to come, so that no session can keep others away.
func (a *Account) kept() int {
	kept := len(a.sessions) - a.credits.busy
	if len(a.sessions) < a.places() {
		kept++
	}
	return kept
}

// share is how many more credits a session may use.
func (a *Account) share(p *Session) int {
	free, kept, own := a.credits.free(), a.kept(), 0
	if p.used == 0 {
		kept, own = kept-1, 1 // one is its own
	}
	return max(min(a.SessionInFlight-p.used, free-kept), min(own, free))
}

// freed lets those go on that wait for credits, as many sessions as there are credits for, one after the other. A
// session that was woken and takes none must call it again.
func (a *Account) freed() {
	if !a.BySession {
		loop.Poke(a.CreditsFree)
		loop.Poke(a.Fetched)
		return
	}
	if a.mayAccept() != a.mayTake {
		loop.Poke(a.PlaceFree)
	}
	c := &a.credits
	for n := c.free() - a.kept(); n > 0 && len(c.starved) > 0; n-- {
		c.starved[0].change()
		c.starved = c.starved[1:]
	}
}

// starve makes a session wait for credits, behind those that wait already.
func (a *Account) starve(p *Session) {
	if !slices.Contains(a.credits.starved, p) {
		a.credits.starved = append(a.credits.starved, p)
	}
}

// unstarve takes a session out of those that wait for credits.
func (a *Account) unstarve(p *Session) {
	c := &a.credits
	c.starved = slices.DeleteFunc(c.starved, func(other *Session) bool { return other == p })
}
