package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// MayAccept reports whether one more session may be accepted, and how many are held.
func (a *Account) MayAccept() (may bool, held int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// there is a place, or one that is held can give its place up
	return a.hasPlace() || a.credits.granted > 0 && a.idlest() != nil, len(a.sessions)
}

// Places returns for how many more sessions there is a place and a credit.
func (a *Account) Places() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.freePlaces()
}

// Open notes a session that was accepted. If there is a place, it returns the session, and its pump is to begin. If
// not, the session takes the place of one with nothing to do and begins when that has been given up, so that the client
// never sees more sessions than it wants. isRefused: there is no such session either.
func (a *Account) Open(accepted *semantics.Session) (begins *Session, isRefused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, former := a.newSession(accepted)
	idlest, retiring := a.idlest(), a.retiring()
	switch {
	case former != nil && former.successor == nil:
		former.makeWayFor(next)
	case a.hasPlace() && retiring != nil && len(a.sessions) >= a.places():
		retiring.makeWayFor(next)
	case a.hasPlace():
		a.sessions[next.Lock] = next
		return next, false
	case idlest != nil:
		idlest.makeWayFor(next)
	default: // meanwhile all have got something to do
		return nil, true
	}
	return nil, false
}

// CloseSession lets the pump of a session that the client does not want any more give it up. It reports false when the
// session is not held.
func (a *Account) CloseSession(lock semantics.LockToken) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.sessions[lock]
	if p == nil {
		return false
	}
	p.leave(SessionClosed)
	return true
}

// MayYield reports whether the session has kept its place long enough, and can give it up to another: nothing is in
// flight.
func (p *Session) MayYield() bool {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	a := p.account
	return p.leaving == nil && p.used == 0 && p.isToYield() && a.mayReplace()
}

// isToYield reports whether the session has kept its place long enough, and another one may be ready and wait for it.
func (p *Session) isToYield() bool {
	a := p.account
	return time.Since(p.placed) >= placeTime && time.Since(a.noneReady) >= readyLook && !a.hasPlace()
}

// Yield passes the place to a session that was accepted, nil if none is ready. isRefused: it comes too late, because
// this one was closed meanwhile and another one has its place, or credits were taken back.
func (p *Session) Yield(accepted *semantics.Session) (isRefused bool) {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.placed = time.Now()
	if accepted == nil {
		p.account.noneReady = p.placed
		return false
	}
	if p.successor != nil || !p.account.mayReplace() {
		return true
	}
	next, _ := p.account.newSession(accepted)
	p.makeWayFor(next)
	return false
}

// Closed notes that the session was given up, or that its lock had ended before, and returns why.
func (p *Session) Closed(isLost bool) SessionEnd {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	why := *p.leaving
	if isLost {
		why = SessionLost
	}
	p.isClosed = true
	p.disown()
	return why
}

// Remove takes the session out when the client knows of its end, and returns the one whose pump is to begin in its
// place, nil if there is none.
func (p *Session) Remove() *Session {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	delete(p.account.sessions, p.Lock)
	p.account.leavers--
	p.account.freed()
	return p.successor
}

// newSession returns a Session for one that was accepted. The former one of the same ID, if there is one, has lost its
// lock.
func (a *Account) newSession(accepted *semantics.Session) (next, former *Session) {
	now := time.Now()
	for _, p := range a.sessions {
		if p.ID == accepted.ID && (former == nil || former.isClosed) {
			former = p
		}
	}
	if former != nil && !former.isClosed {
		former.lose()
	}
	return &Session{
		Session: accepted, Changed: make(chan struct{}, 1), account: a,
		lastActive: now, placed: now, endsAt: now.Add(a.lockFor),
	}, former
}

// makeWayFor passes the place to another session.
func (p *Session) makeWayFor(next *Session) {
	p.successor = next
	p.account.sessions[next.Lock] = next
	p.leave(SessionYielded)
}

// mayReplace reports whether another session may come in the place of one that has nothing in flight: the client wants
// no fewer than it has, and there is a credit.
func (a *Account) mayReplace() bool {
	return len(a.sessions)-a.leavers <= a.places() && a.credits.free() > 0
}

// hasPlace reports whether there is a place for one more session, and a credit.
func (a *Account) hasPlace() bool { return a.freePlaces() > 0 }

func (a *Account) freePlaces() int {
	stay, needy := len(a.sessions)-a.leavers, len(a.sessions)-a.credits.busy
	if a.leavers > 0 {
		needy = 0
		for _, p := range a.sessions {
			if p.leaving == nil && p.used == 0 {
				needy++
			}
		}
	}
	return max(min(a.places()-stay, a.credits.free()-needy), 0)
}

// idlest returns the session that has had nothing to do for longest, nil when all have.
func (a *Account) idlest() *Session {
	if a.idlers == 0 {
		return nil
	}
	var found *Session
	for _, p := range a.sessions {
		if p.isIdle() && (found == nil || p.lastActive.Before(found.lastActive)) {
			found = p
		}
	}
	return found
}

// retiring returns a session that is being given up and whose place no other one has yet, nil when there is none.
func (a *Account) retiring() *Session {
	if a.leavers == 0 {
		return nil
	}
	for _, p := range a.sessions {
		if p.leaving != nil && p.successor == nil {
			return p
		}
	}
	return nil
}
