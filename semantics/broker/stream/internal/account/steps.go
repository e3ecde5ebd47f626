package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// Steps are what is to be done for the sessions of a subscription.
type Steps struct {
	Looks  []Look     // for messages, together; EndLook must be called for each
	Yields []*Session // that pass their place to a session that is ready; Yield must be called for each
	Ends   []*Session // that are given up; Withdraw and then Closed must be called for each
	Next   time.Time  // when to ask again although nothing has changed; zero: not
}

// Look is for at most N messages of a session, for which credits are used.
type Look struct {
	Session *Session
	N       int
}

// Steps returns what is to be done for the sessions that have changed since the last call, and for those that time
// concerns.
func (a *Account) Steps(isDraining bool) (steps Steps) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if isDraining && !a.drains {
		a.drains = true
		a.changeAll()
	}
	if !a.nextDue.IsZero() && !now.Before(a.nextDue) {
		a.findDue(now)
	}
	for len(a.changed) > 0 {
		changed := a.changed
		a.changed = nil
		for _, p := range changed {
			p.isChanged = false
			p.step(now, isDraining, &steps)
		}
	}
	steps.Next = a.nextDue
	return steps
}

// Wake notes that there may be something in sessions: in all of them, or in those with these locks.
func (a *Account) Wake(locks []semantics.LockToken, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if all {
		for _, p := range a.sessions {
			p.wake()
		}
		return
	}
	for _, lock := range locks {
		if p := a.sessions[lock]; p != nil {
			p.wake()
		}
	}
}

func (p *Session) wake() {
	p.isWoken = true
	if p.isWaiting {
		p.change()
	}
}

// EndLook notes what a look has taken, and after what time to look again if that is nothing: 0 is at once. surplus is
// as of Deliver.
func (a *Account) EndLook(look Look, taken *delivered, recheck time.Duration) (surplus *delivered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := look.Session
	p.isLooking, p.pausedFor = false, 0
	surplus = p.handOn(taken, look.N, recheck)
	a.freed()
	return surplus
}

// FailLook notes that a look has failed, and that there is to be none for some time, at least for atLeast.
func (a *Account) FailLook(look Look, atLeast time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := look.Session
	p.isLooking = false
	a.use(p, -look.N)
	p.pausedFor = min(max(2*p.pausedFor, loop.FirstPause), loop.LastPause)
	p.pausedTo = time.Now().Add(max(p.pausedFor, atLeast))
	a.dueBy(p.pausedTo)
	p.change()
	a.freed()
}

// handOn passes messages that were taken from the session with so many credits to the client. If there were none, the
// session waits, unless it is to look again at once.
func (p *Session) handOn(taken *delivered, credits int, recheck time.Duration) (surplus *delivered) {
	a := p.account
	surplus = a.deliver(p, taken, credits)
	p.isReturned = surplus != nil
	a.pushDelivery(p, taken)
	now := time.Now()
	switch {
	case len(taken.Tokens()) > 0 && surplus == nil && p.leaving == nil && p.used >= a.SessionInFlight:
		// It is full until one of its messages is settled.
	case len(taken.Tokens()) > 0 || surplus != nil || recheck <= 0 || p.isWoken || p.leaving != nil ||
		a.life.Err() != nil || a.drains || a.credits.free() < 1:
		p.change()
	default:
		p.wait(now, recheck)
	}
	return surplus
}

// change lets Steps look at the session.
func (p *Session) change() {
	if !p.isChanged {
		p.isChanged = true
		p.account.changed = append(p.account.changed, p)
		loop.Poke(p.account.SessionsChanged)
	}
}

func (a *Account) changeAll() {
	for _, p := range a.sessions {
		p.change()
	}
}

// dueBy makes Steps look at what time concerns by an instant.
func (a *Account) dueBy(at time.Time) {
	if a.nextDue.IsZero() || at.Before(a.nextDue) {
		a.nextDue = at
		loop.Poke(a.SessionsChanged)
	}
}

// findDue finds the sessions that time concerns now, and when the next one is. Instants move while sessions work, so
// nextDue is often too early, which costs one pass over the sessions.
func (a *Account) findDue(now time.Time) {
	a.nextDue = time.Time{}
	later := func(at time.Time) bool {
		if now.Before(at) {
			a.dueBy(at)
			return true
		}
		return false
	}
	for _, p := range a.sessions {
		if p.isIdle() && !later(p.lastActive.Add(a.SessionIdle)) {
			p.leave(SessionIdle)
		}
		if !p.lookAt.IsZero() && !later(p.lookAt) {
			p.lookAt = time.Time{}
			p.isWoken = p.isWoken || p.isWaiting
			p.change()
		}
		if !p.pausedTo.IsZero() && !later(p.pausedTo) {
			p.pausedTo = time.Time{}
			p.change()
		}
	}
}

// step finds out what is to be done for one session.
func (p *Session) step(now time.Time, isDraining bool, steps *Steps) {
	a := p.account
	switch {
	case p.isLooking, p.isYielding, p.isReturned, p.following > 0: // its end changes the session
	case p.isEnding, !p.isOpen:
	case p.leaving != nil:
		p.isEnding = true
		p.stopWaiting()
		steps.Ends = append(steps.Ends, p)
	case p.mayYield(now):
		p.isYielding, a.noneReady = true, now
		steps.Yields = append(steps.Yields, p)
	case isDraining:
		p.stopWaiting()
		p.reserve(now, true)
	case now.Before(p.pausedTo), p.isWaiting && !p.isWoken && a.credits.free() >= 0:
	default:
		p.stopWaiting()
		n, until := p.reserve(now, false)
		if n > 0 {
			p.isLooking, p.isWoken, p.lookAt = true, false, time.Time{}
			steps.Looks = append(steps.Looks, Look{p, n})
		} else if !until.IsZero() {
			p.lookAt = until
			a.dueBy(until)
		}
	}
}
