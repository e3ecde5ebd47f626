package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// BeginTurns returns for each group of messages to complete how many messages of its session may be taken in the same
// step, in their place: 0 if a look takes what follows. Their credits stay with the session until EndTurn, which must
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

// EndTurn notes what was taken in a turn, and after what time to look again if that is nothing: 0 is at once. surplus
// is as of Deliver.
func (a *Account) EndTurn(
	g Group, taken *delivery.Delivery, recheck time.Duration,
) (p *Session, surplus *delivery.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p = g.session()
	carried := p.carried
	p.following, p.carried = 0, 0
	surplus = p.handOn(taken, carried, recheck)
	a.freed()
	return p, surplus
}

// session returns the session of the messages of a group, nil for none.
func (g *Group) session() *Session {
	if len(g.unsettled) == 0 {
		return nil
	}
	return g.unsettled[0].session
}

// beginTurn is as BeginTurns for a session of which so many messages are completed. Only one look or turn at a time
// takes messages of a session, so that none overtakes another.
func (p *Session) beginTurn(completed int) int {
	a, now := p.account, time.Now()
	ends := p.isToYield(now)
	if p.used > completed { // it is to come to an end
		ends = now.Sub(p.placed) >= placeTime && !a.hasPlace()
	}
	if p.leaving != nil || p.isLooking || p.isWaiting || p.isReturned || p.following > 0 || ends {
		return 0
	}
	a.use(p, -completed)
	p.following = min(a.share(p), completed)
	a.use(p, completed)
	p.isWoken = p.isWoken && p.following == 0
	return p.following
}
