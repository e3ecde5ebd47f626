package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// MayAccept reports whether one more session may be accepted, and how many are held.
func (a *Account) MayAccept() (may bool, held int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mayTake = a.mayAccept()
	return a.mayTake, len(a.sessions)
}

// mayAccept reports whether there is a place, or a session that is held can give its place up.
func (a *Account) mayAccept() bool { return a.hasPlace() || a.credits.granted > 0 && a.idlers > 0 }

// Waiting returns how many sessions have no message and wait for one.
func (a *Account) Waiting() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.sessions {
		if p.isWaiting {
			n++
		}
	}
	return n
}

// Places returns for how many more sessions there is a place and a credit.
func (a *Account) Places() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.freePlaces()
}

// Open notes a session that was accepted. If all places are taken, it gets that of a session with nothing to do, and
// begins when that one has been given up, so that the client never sees more sessions than it wants. isRefused: all
// sessions have something to do.
func (a *Account) Open(accepted *semantics.Session) (isRefused bool) {
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
		a.add(next)
		a.begin(next)
	case idlest != nil:
		idlest.makeWayFor(next)
	default: // meanwhile all have got something to do
		return true
	}
	return false
}

// begin lets the client hear of a session. Its messages follow when it has.
func (a *Account) begin(p *Session) { a.push(p, Event{SessionOpened: p.Session}) }

// CloseSession lets a session be given up that the client does not want any more. It reports false when the session is
// not held.
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

// mayYield reports whether the session has kept its place long enough, and can give it up to another: nothing is in
// flight.
func (p *Session) mayYield(now time.Time) bool {
	return p.leaving == nil && p.used == 0 && p.isToYield(now) && p.account.mayReplace()
}

// isToYield reports whether the session has kept its place long enough, and another one may be ready and wait for it.
func (p *Session) isToYield(now time.Time) bool {
	a := p.account
	return now.Sub(p.placed) >= placeTime && now.Sub(a.noneReady) >= readyLook && !a.hasPlace()
}

// Yield passes the place to a session that was accepted, nil if none is ready. isRefused: it comes too late, because
// this one was closed meanwhile and another one has its place, or credits were taken back.
func (p *Session) Yield(accepted *semantics.Session) (isRefused bool) {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	p.placed, p.isYielding = time.Now(), false
	defer p.change()
	if accepted == nil {
		p.account.noneReady = p.placed
		return false
	}
	p.account.noneReady = time.Time{} // others may look now
	if p.successor != nil || !p.account.mayReplace() {
		return true
	}
	next, _ := p.account.newSession(accepted)
	p.makeWayFor(next)
	return false
}

// Closed notes that the session was given up, or that its lock had ended before, and lets the client hear of it.
func (p *Session) Closed(isLost bool) {
	p.account.mu.Lock()
	defer p.account.mu.Unlock()
	why := *p.leaving
	if isLost {
		why = SessionLost
	}
	p.isClosed = true
	p.disown()
	p.account.push(p, Event{SessionClosed: &ClosedSession{ID: p.ID, Lock: p.Lock, Why: why}})
}

// remove takes the session out when the client knows of its end, and begins the one that has its place.
func (p *Session) remove() {
	a := p.account
	delete(a.sessions, p.Lock)
	if a.byID[p.ID] == p {
		delete(a.byID, p.ID)
	}
	a.leavers--
	if p.successor != nil {
		a.begin(p.successor)
	}
	a.freed()
	loop.Poke(a.PlaceFree)
}

// newSession returns a Session for one that was accepted. The former one of the same ID, if there is one, has lost its
// lock.
func (a *Account) newSession(accepted *semantics.Session) (next, former *Session) {
	now := time.Now()
	former = a.byID[accepted.ID]
	if former != nil && !former.isClosed {
		former.lose()
	}
	return &Session{
		Session: accepted, account: a, lastActive: now, placed: now, endsAt: now.Add(a.lockFor),
	}, former
}

func (a *Account) add(p *Session) { a.sessions[p.Lock], a.byID[p.ID] = p, p }

// makeWayFor passes the place to another session.
func (p *Session) makeWayFor(next *Session) {
	p.successor = next
	p.account.add(next)
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
	stay := len(a.sessions) - a.leavers
	needy := stay - a.credits.staying
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
