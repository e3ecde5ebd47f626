package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
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

// Session is one session that the subscription holds. Steps says what is to be done for it.
type Session struct {
	*semantics.Session

	account    *Account
	used       int       // credits: for messages that the client has, for a look under way, and for the next message
	lastActive time.Time // when it last had a message, or one of its messages was settled
	placed     time.Time // since when it has its place
	endsAt     time.Time // no earlier than the end of its lock, by this process' clock
	isOpen     bool      // the client knows of it
	isChanged  bool      // it is among those that Steps looks at
	isLooking  bool      // a look takes messages
	isYielding bool      // it is being found out whether another session is ready
	isReturned bool      // messages go back that the client cannot have seen; until then nothing behind them is taken
	following  int       // messages that a turn under way takes in the place of those that it completes
	carried    int       // credits of messages that this turn has completed, for those that follow
	isWaiting  bool      // it was empty, and the store wakes it; for the next message it uses one credit
	isWoken    bool      // by the store, since the last look or turn began
	isCounted  bool      // among those that have nothing to do
	lookAt     time.Time // when to look although nothing has changed; zero: not
	pausedTo   time.Time // no look before, because the last one failed; zero: at once
	pausedFor  time.Duration
	leaving    *SessionEnd // it is to be given up
	isEnding   bool        // it is being given up
	isClosed   bool        // it was given up
	successor  *Session    // begins when this one has ended
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

// reserve takes credits for as many messages as may be in flight now. If there are none, the session waits for a change
// or, unless it is zero, for an instant.
func (p *Session) reserve(now time.Time, isDraining bool) (n int, until time.Time) {
	a := p.account
	a.unstarve(p)
	stayed := now.Sub(p.placed)
	switch {
	case isDraining && p.used == 0:
		p.leave(SessionDrained)
		return 0, until
	case isDraining:
		return 0, until
	case stayed >= 2*placeTime:
		p.placed = now
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

// wait makes the session wait for its next message, with one credit.
func (p *Session) wait(now time.Time, recheck time.Duration) {
	a := p.account
	a.use(p, 1)
	p.isWaiting, p.lookAt = true, now.Add(recheck)
	p.countIdle()
	a.dueBy(p.lookAt)
	if p.isIdle() {
		a.dueBy(p.lastActive.Add(a.SessionIdle))
	}
}

// stopWaiting frees the credit for the next message.
func (p *Session) stopWaiting() {
	if p.isWaiting {
		p.isWaiting, p.lookAt = false, time.Time{}
		p.account.use(p, -1)
		p.countIdle()
	}
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

// leave lets the session be given up.
func (p *Session) leave(why SessionEnd) {
	if p.leaving == nil {
		p.leaving = &why
		p.account.leavers++
		if p.used > 0 {
			p.account.credits.staying--
		}
		p.countIdle()
	}
	p.change()
	loop.Poke(p.account.PlaceFree)
}

// lose lets the session be given up, and drops its messages at once.
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
