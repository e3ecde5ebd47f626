package stream

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// lockLook is how often a subscription that has something in hand looks at the queue's LockDuration: often enough to
// renew the shortest locks in time, however long they were before.
const lockLook = semantics.MinLockDuration / 5

// keepLocks renews the locks of what the client has, for as long as it may have it (LOCK-9), and finds out which are
// lost. It never waits for the client. What fails is tried again at the next look.
func (s *Subscription) keepLocks() {
	look := time.NewTicker(lockLook)
	defer look.Stop()
	renewed := time.Now()
	for {
		s.pass(nil, true, look.C)
		if s.life.Err() != nil {
			return
		}
		now := time.Now()
		if !s.hasLocks() {
			renewed = now
			continue
		}
		lockFor, isNew := s.lookAtQueue()
		isDue := isNew || s.isUrgent() || now.Sub(renewed) >= lockFor/3
		s.resolveDoubts() // first, so that a message that was settled is not found to be lost
		messages, sessions := s.renewMessages(isDue), s.renewSessions(isDue)
		if isDue && messages && sessions {
			renewed = now
		}
	}
}

// isUrgent says whether the client was given messages whose locks have been running for long.
func (s *Subscription) isUrgent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isUrgent := s.renewSoon
	s.renewSoon = false
	return isUrgent
}

func (s *Subscription) hasLocks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsettled)+len(s.sessions) > 0 || s.ahead != nil && len(s.ahead.messages) > 0
}

// lookAtQueue looks for a change of LockDuration. When it has become longer, locks taken since the last look may be so.
// A queue that is gone, or was made anew as another kind, ends the subscription: a pump that waits for the client to
// settle would not find out.
func (s *Subscription) lookAtQueue() (lockFor time.Duration, isNew bool) {
	queue, err := s.broker.Entity(s.life, s.source.Path)
	if hasSessions := queue.Options.RequiresSession && s.source.SubQueue == semantics.MainQueue; err == nil &&
		hasSessions != s.bySession {
		reason := semantics.SessionRequired
		if s.bySession {
			reason = semantics.SessionNotSupported
		}
		err = semantics.SessionFailure(reason, s.source.Path)
	}
	if err != nil && !semantics.CodeOf(err).Retryable() {
		s.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return s.lockFor, false
	}
	if longer := queue.Options.LockDuration - s.lockFor; longer > 0 {
		for _, d := range s.unsettled {
			d.endsAt = d.endsAt.Add(longer)
		}
		for _, p := range s.sessions {
			p.endsAt = p.endsAt.Add(longer)
		}
		if s.ahead != nil {
			s.ahead.lengthen(longer)
		}
	}
	isNew = s.lockFor != queue.Options.LockDuration
	s.lockFor = queue.Options.LockDuration
	return s.lockFor, isNew
}

// asksFor says whether a lock that the client has had something under since an instant is to be renewed: when that is
// due, as long as it may be, and when it must have ended, for then the store tells whether it has. It still holds when
// the client renews it by itself.
func (s *Subscription) asksFor(isDue bool, since, endsAt time.Time) bool {
	return isDue && time.Since(since) < s.options.MaxAutoRenew || time.Now().After(endsAt)
}

// renewMessages renews the locks of messages without session. It reports false when that has to be tried again.
func (s *Subscription) renewMessages(isDue bool) bool {
	var tokens []semantics.LockToken
	s.mu.Lock()
	for token, d := range s.unsettled {
		if d.pump == nil && s.asksFor(isDue, d.since, d.endsAt) {
			tokens = append(tokens, token)
		}
	}
	s.mu.Unlock()
	isDone := true
	for some := range slices.Chunk(tokens, semantics.MaxRenewTokens) {
		renewals, err := s.broker.RenewLocks(s.life, s.source, some)
		if err != nil {
			isDone = false
			continue
		}
		s.renewed(some, renewals)
	}
	return isDone
}

// renewed notes the outcome of a renewal and tells the client of locks that are lost, if it has the messages.
func (s *Subscription) renewed(tokens []semantics.LockToken, renewals []semantics.Renewal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range renewals {
		d := s.unsettled[tokens[i]]
		switch {
		case d == nil || d.settling > 0 && r.Code != "": // settled meanwhile, or about to be
		case r.Code == "":
			d.endsAt = time.Now().Add(s.lockFor)
		default:
			s.drop(tokens[i])
			if d.isTaken {
				s.lost = append(s.lost, tokens[i])
				loop.Poke(s.lostAny)
			}
		}
	}
	s.freed()
}

// renewSessions renews the locks of sessions: of those of which the client has nothing when it is due, and of the
// others as asksFor says. It reports false when that has to be tried again.
func (s *Subscription) renewSessions(isDue bool) bool {
	var pumps []*sessionPump
	s.mu.Lock()
	since := map[*sessionPump]time.Time{}
	for _, d := range s.unsettled {
		if oldest, ok := since[d.pump]; !ok || d.since.Before(oldest) {
			since[d.pump] = d.since
		}
	}
	for _, p := range s.sessions {
		oldest, isBusy := since[p]
		if !p.isOpen { // the client does not read
			oldest, isBusy = p.turn, true
		}
		if p.leaving == nil && (!isBusy && isDue || s.asksFor(isDue, oldest, p.endsAt)) {
			pumps = append(pumps, p)
		}
	}
	s.mu.Unlock()
	var failed atomic.Bool
	loop.Each(pumps, func(p *sessionPump) {
		if p.renew() != nil {
			failed.Store(true)
		}
	})
	return !failed.Load()
}

// renew renews the lock of a session, or finds out that it is lost.
func (p *sessionPump) renew() error {
	s := p.sub
	err := s.broker.RenewSession(s.life, p.source)
	if semantics.CodeOf(err) == semantics.SessionLockLost {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.lose()
		return nil
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.endsAt = time.Now().Add(s.lockFor)
	return nil
}
