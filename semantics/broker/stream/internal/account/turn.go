package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// BeginTurns returns for each group of messages to complete how many messages of its session may be taken in the same
// step, in their place: 0 if the pump takes what follows. Their credits stay with the session until EndTurn, which must
// be called for each group that has some.
func (a *Account) BeginTurns(groups []Group) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	follow := make([]int, len(groups))
	for i, g := range groups {
		if p := g.session(); p != nil {
			follow[i] = p.beginTurn(len(g.unsettled))
		}
	}
	return follow
}

// EndTurn notes what was taken in a turn. The pump hands it to the client (NextTaken). surplus is as of Deliver.
func (a *Account) EndTurn(g Group, taken *delivery.Delivery) (p *Session, surplus *delivery.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p = g.session()
	carried := p.carried
	p.following, p.carried = 0, 0
	surplus = a.deliver(p, taken, carried)
	p.isEmpty = len(taken.Tokens()) == 0 && surplus == nil
	if len(taken.Tokens()) > 0 {
		p.taken = append(p.taken, taken)
	}
	loop.Poke(p.Changed)
	return p, surplus
}

// NextTaken takes what came with the completion of earlier messages, nil if there is nothing.
func (p *Session) NextTaken() *delivery.Delivery {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	if len(p.taken) == 0 {
		return nil
	}
	taken := p.taken[0]
	p.taken = p.taken[1:]
	return taken
}

// WasEmpty reports whether a turn has found the session empty since the last call.
func (p *Session) WasEmpty() bool {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	isEmpty := p.isEmpty
	p.isEmpty = false
	return isEmpty
}

// session returns the session of the messages of a group, nil for none.
func (g *Group) session() *Session {
	if len(g.unsettled) == 0 {
		return nil
	}
	return g.unsettled[0].session
}

// beginTurn is as BeginTurns for a session of which so many messages are completed. Only one goroutine at a time takes
// messages of a session, so that none overtakes another.
func (p *Session) beginTurn(completed int) int {
	a := p.account
	ends := p.isToYield()
	if p.used > completed { // it is to come to an end
		ends = time.Since(p.placed) >= placeTime && !a.hasPlace()
	}
	if p.leaving != nil || p.isTaking || p.following > 0 || ends {
		return 0
	}
	a.use(p, -completed)
	p.following = min(a.share(p), completed)
	a.use(p, completed)
	return p.following
}
