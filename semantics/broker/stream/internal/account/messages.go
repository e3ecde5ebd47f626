package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// message is one that the client has, or is about to get.
type message struct {
	source  semantics.Source
	session *Session  // nil: of no session
	isTaken bool      // Take took it
	since   time.Time // when Take took it; before that, when it came from the store
	endsAt  time.Time // no earlier than the end of its lock, by this process' clock

	settling int    // settlements under way
	doubt    *doubt // the last settlement may have taken effect or not; nil: none such
}

// Deliver notes messages without a session of a receive for which n credits are used. taken then has what is to be
// handed to the client: nothing, if it is fetched ahead. surplus is to be given back with its credits, because the
// client has taken back the credits for it; nil: there is none.
func (a *Account) Deliver(taken *delivery.Delivery, n int) (surplus *delivery.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	surplus = a.deliver(nil, taken, n)
	a.freed()
	return surplus
}

// deliver is Deliver for a session, or with nil for none. What is of a session that is to be given up is surplus too.
// freed must be called afterwards.
func (a *Account) deliver(p *Session, taken *delivery.Delivery, n int) (surplus *delivery.Delivery) {
	a.use(p, len(taken.Tokens())-n)
	keep := max(len(taken.Tokens())+min(a.credits.free(), 0), 0)
	if p != nil && p.leaving != nil || a.life.Err() != nil {
		keep = 0
	}
	if keep < len(taken.Tokens()) {
		surplus = taken.Split(keep)
	}
	if a.ahead != nil {
		a.ahead.add(taken.Split(0))
	}
	a.book(p, taken)
	return surplus
}

// Take reports whether a delivery is still worth handing to the client. It leaves in it those messages whose locks were
// not lost while the client was busy. In ReceiveAndDelete mode the delivery is one of Removals from now on.
func (a *Account) Take(d *delivery.Delivery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.Err() != nil {
		return false // what it had is being given back
	}
	now := time.Now()
	d.Keep(func(t semantics.LockToken) bool {
		m := a.unsettled[t]
		if m != nil {
			m.isTaken, m.since = true, now
		}
		return m != nil
	})
	if len(d.Messages) == 0 {
		return false
	}
	if a.Removes {
		a.Removals.Add(1)
	}
	return true
}

// Forget notes that messages were settled, or that the client does not get them.
func (a *Account) Forget(tokens []semantics.LockToken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range tokens {
		a.drop(t)
	}
	a.freed()
}

// TakeLost returns the messages whose locks were lost since the last call, as far as the client has them.
func (a *Account) TakeLost() []semantics.LockToken {
	a.mu.Lock()
	defer a.mu.Unlock()
	lost := a.lost
	a.lost = nil
	return lost
}

// HasLost reports whether TakeLost has something.
func (a *Account) HasLost() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.lost) > 0
}

// book notes messages that are on their way to the client.
func (a *Account) book(p *Session, taken *delivery.Delivery) {
	now, all := time.Now(), make([]message, len(taken.Tokens()))
	for i, t := range taken.Tokens() {
		all[i] = message{source: taken.Source(), session: p, since: now, endsAt: now.Add(a.lockFor)}
		a.unsettled[t] = &all[i]
	}
	if p != nil && len(taken.Tokens()) > 0 {
		p.lastActive = now
	}
}

// drop notes that a message is not unsettled any more. freed must be called afterwards.
func (a *Account) drop(t semantics.LockToken) {
	m := a.unsettled[t]
	if m == nil {
		return
	}
	delete(a.unsettled, t)
	if p := m.session; p != nil && p.carried < p.following {
		p.carried++ // its credit is for a message that follows
	} else {
		a.use(p, -1)
	}
	if a.ahead != nil && m.isTaken {
		a.ahead.handled(time.Since(m.since))
	}
	if p := m.session; p != nil {
		p.lastActive = time.Now()
		if p.following == 0 { // else the end of the turn does
			p.change()
		}
		if p.isIdle() {
			a.dueBy(p.lastActive.Add(a.SessionIdle))
		}
	}
}
