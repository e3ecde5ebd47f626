package account

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// HasLocks reports whether there is a lock that may have to be renewed.
func (a *Account) HasLocks() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.unsettled)+len(a.sessions) > 0 || a.ahead != nil && len(a.ahead.messages) > 0
}

// TakeUrgent reports whether the client was given messages, since the last call, whose locks have been running for
// long.
func (a *Account) TakeUrgent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	isUrgent := a.renewSoon
	a.renewSoon = false
	return isUrgent
}

// LockDuration returns the queue's LockDuration as last read.
func (a *Account) LockDuration() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lockFor
}

// SetLockDuration notes the queue's LockDuration, and reports whether it has changed. When it has become longer, locks
// taken since the last look may be so.
func (a *Account) SetLockDuration(lockFor time.Duration) (isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if longer := lockFor - a.lockFor; longer > 0 {
		for _, m := range a.unsettled {
			m.endsAt = m.endsAt.Add(longer)
		}
		for _, p := range a.sessions {
			p.endsAt = p.endsAt.Add(longer)
		}
		if a.ahead != nil {
			a.ahead.lengthen(longer)
		}
	}
	isNew = a.lockFor != lockFor
	a.lockFor = lockFor
	return isNew
}

// MessagesToRenew returns the messages without a session whose locks are to be renewed. isDue reports whether it is
// time to renew.
func (a *Account) MessagesToRenew(isDue bool) (tokens []semantics.LockToken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for token, m := range a.unsettled {
		if m.session == nil && a.asksFor(isDue, m.since, m.endsAt) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// MessagesRenewed notes the outcome of a renewal, and which lost locks the client is to be told of.
func (a *Account) MessagesRenewed(tokens []semantics.LockToken, renewals []semantics.Renewal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, r := range renewals {
		m := a.unsettled[tokens[i]]
		switch {
		case m == nil || m.settling > 0 && r.Code != "": // settled meanwhile, or about to be
		case r.Code == "":
			m.endsAt = time.Now().Add(a.lockFor)
		case r.Code.Retryable(): // that of a partition whose server is away (PART-7): nothing is known
		default:
			a.drop(tokens[i])
			if m.isTaken {
				a.lost = append(a.lost, tokens[i])
				loop.Poke(a.LocksLost)
			}
		}
	}
	a.freed()
}

// SessionsToRenew returns the sessions whose locks are to be renewed: if isDue, those of which the client has no
// messages; the others as asksFor reports.
func (a *Account) SessionsToRenew(isDue bool) (sessions []*Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := map[*Session]time.Time{}
	for _, m := range a.unsettled {
		if oldest, ok := since[m.session]; !ok || m.since.Before(oldest) {
			since[m.session] = m.since
		}
	}
	for _, p := range a.sessions {
		oldest, isBusy := since[p]
		if !p.isOpen { // the client does not read
			oldest, isBusy = p.placed, true
		}
		if p.leaving == nil && (!isBusy && isDue || a.asksFor(isDue, oldest, p.endsAt)) {
			sessions = append(sessions, p)
		}
	}
	return sessions
}

// asksFor reports whether to renew a lock under which the client has had messages since an instant. It is to be renewed
// when that is due and still permitted. It is also to be renewed when it must have expired, because the store then
// reports whether it has: if the client has renewed it, it still holds.
func (a *Account) asksFor(isDue bool, since, endsAt time.Time) bool {
	return isDue && time.Since(since) < a.MaxAutoRenew || time.Now().After(endsAt)
}
