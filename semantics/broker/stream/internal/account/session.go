package account

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// placeTime is how long a session that always has messages keeps its place while others may be ready, so that none
// starves. One that has several messages in flight then takes no more for as long again, so that it can come to an end.
const placeTime = 500 * time.Millisecond

// readyLook is how often, at most, the sessions of a subscription look whether another one is ready and waits for the
// place of one of them.
const readyLook = 20 * time.Millisecond

// SessionEnd is why a subscription no longer holds a session.
type SessionEnd uint8

// The ends of a session.
const (
	SessionIdle    SessionEnd = iota // it had no message for SessionIdle
	SessionYielded                   // another session was ready and waited for its place
	SessionClosed                    // the client asked for it
	SessionLost                      // its lock ended, or the entity is gone
	SessionDrained                   // this Broker drains
	SessionPaused                    // the client has no credit left for it
)

// Session is one session that the subscription holds. One goroutine, its pump, takes its messages.
type Session struct {
	*semantics.Session

	Changed chan struct{} // wakes the pump; has a buffer of one

	account    *Account
	used       int                  // credits: for messages that the client has and for a receive under way
	lastActive time.Time            // when it last had a message, or one of its messages was settled
	placed     time.Time            // since when it has its place
	endsAt     time.Time            // no earlier than the end of its lock, by this process' clock
	isTaking   bool                 // the pump takes messages, or hands on what it took
	following  int                  // messages that a turn under way takes in the place of those that it completes
	carried    int                  // credits of messages that this turn has completed, for those that follow
	taken      []*delivery.Delivery // with turns, for the pump to hand on
	isEmpty    bool                 // the last turn found nothing
	isWaiting  bool                 // in a receive that waits, for which it uses one credit
	isOpen     bool                 // the client knows of it
	isCounted  bool                 // among those that have nothing to do
	idle       *time.Timer          // runs while it waits and has nothing in flight
	interrupt  context.CancelFunc   // of that receive
	leaving    *SessionEnd          // it is to be given up
	isClosed   bool                 // it was given up
	successor  *Session             // begins when this one has ended
}

// Opened notes that the client knows of the session.
func (p *Session) Opened() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.isOpen = true
}

// Renewed notes that the lock was renewed.
func (p *Session) Renewed() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.endsAt = time.Now().Add(p.account.lockFor)
}

// Lose notes that the lock has ended. A session that is being given up finds out then whether its lock ended before.
func (p *Session) Lose() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.lose()
}

// Use takes credits for as many messages as may be in flight now. 0: the pump is to wait until Changed, or until an
// instant if it is not zero, and to ask again. isOver: the session is to be given up.
func (p *Session) Use(isDraining bool) (n int, until time.Time, isOver bool) {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	n, until = p.reserve(isDraining)
	p.isTaking = n > 0
	return n, until, p.leaving != nil
}

// Waiting notes that the pump, which uses n credits, waits for one message with one of them until interrupt is called.
func (p *Session) Waiting(n int, interrupt context.CancelFunc) {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.account.use(p, 1-n)
	p.isWaiting, p.interrupt = true, interrupt
	p.countIdle()
	p.armIdle()
	if p.leaving != nil {
		interrupt()
	}
	p.account.freed() // there may also be a place for another session now
}

// Waited notes that the pump does not wait any more.
func (p *Session) Waited() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.isWaiting, p.interrupt = false, nil
	p.countIdle()
	if p.idle != nil {
		p.idle.Stop()
	}
}

// IdleOut closes the session if it has had nothing to do for long enough.
func (p *Session) IdleOut() {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	if p.isIdle() && time.Since(p.lastActive) >= p.account.SessionIdle {
		p.leave(SessionIdle)
	}
}

func (p *Session) reserve(isDraining bool) (n int, until time.Time) {
	a := p.account
	a.unstarve(p)
	stayed := time.Since(p.placed)
	switch {
	case p.leaving != nil, p.following > 0, len(p.taken) > 0:
		return 0, until
	case isDraining && p.used == 0:
		p.leave(SessionDrained)
		return 0, until
	case isDraining:
		return 0, until
	case stayed >= 2*placeTime:
		p.placed = time.Now()
	case stayed >= placeTime && p.used > 0 && !a.hasPlace():
		a.freed() // what it may have been woken for is for others
		return 0, p.placed.Add(2 * placeTime)
	}
	if n = a.share(p); n > 0 {
		a.use(p, n)
		return n, until
	}
	if p.used == 0 {
		p.leave(SessionPaused)
	} else if p.used < a.SessionInFlight {
		a.starve(p)
	}
	return 0, until
}

// isIdle reports whether the session has nothing to do.
func (p *Session) isIdle() bool { return p.isWaiting && p.used == 1 && p.leaving == nil }

// countIdle keeps the count of sessions that have nothing to do, after a change of what isIdle depends on.
func (p *Session) countIdle() {
	if isIdle := p.isIdle(); isIdle != p.isCounted {
		p.isCounted = isIdle
		if isIdle {
			p.account.idlers++
		} else {
			p.account.idlers--
		}
	}
}

// armIdle lets the session be given up when it has had nothing to do for long enough.
func (p *Session) armIdle() {
	left := p.account.SessionIdle - time.Since(p.lastActive)
	switch {
	case !p.isIdle():
	case p.idle == nil:
		p.idle = time.AfterFunc(left, p.IdleOut)
	default:
		p.idle.Reset(left)
	}
}

// leave makes the pump give the session up.
func (p *Session) leave(why SessionEnd) {
	if p.leaving == nil {
		p.leaving = &why
		p.account.leavers++
		p.countIdle()
	}
	if p.interrupt != nil {
		p.interrupt()
	}
	loop.Poke(p.Changed)
	loop.Poke(p.account.PlaceFree)
}

// lose makes the pump give the session up, and drops its messages at once.
func (p *Session) lose() {
	p.leave(SessionLost)
	p.disown()
}

// disown drops the messages of the session.
func (p *Session) disown() {
	a := p.account
	for token, m := range a.unsettled {
		if m.session == p {
			if m.isTaken {
				a.gone.add(token)
			}
			a.drop(token)
		}
	}
	a.freed()
}
