package stream

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// acceptSessions accepts sessions for as long as the subscription lives: while there is room, or when one that is held
// has nothing to do and can make room for one that has.
func (s *Subscription) acceptSessions() {
	pause := loop.FirstPause
	for s.awaitPlace() {
		session, err := s.acceptOne()
		if err != nil {
			if !s.survives(err, &pause, nil) {
				return
			}
			continue
		}
		pause = loop.FirstPause
		if session != nil {
			s.recovered()
			s.open(session)
		}
	}
}

// awaitPlace waits until a session may be accepted. False: the subscription ends.
func (s *Subscription) awaitPlace() bool {
	for {
		isDraining := s.isDraining()
		s.mu.Lock()
		canAccept, held := s.canAccept(), len(s.sessions)
		s.mu.Unlock()
		switch {
		case s.life.Err() != nil:
			return false
		case isDraining && held == 0:
			s.fail(semantics.Draining())
			return false
		case canAccept && !isDraining:
			return true
		}
		s.pass(s.place, isDraining, nil)
	}
}

// acceptOne waits for a session that is ready. It comes back without one when there is no room for it any more.
func (s *Subscription) acceptOne() (*semantics.Session, error) {
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	type outcome struct {
		session *semantics.Session
		err     error
	}
	done := make(chan outcome, 1)
	s.work.Go(func() {
		session, err := s.broker.Accept(ctx, s.source.Path, semantics.MaxWait)
		done <- outcome{session, err}
	})
	for {
		select {
		case o := <-done:
			if semantics.CodeOf(o.err) == semantics.Cancelled && s.life.Err() == nil {
				o.err = nil
			}
			return o.session, o.err
		case <-s.place:
			s.mu.Lock()
			if !s.canAccept() {
				cancel()
			}
			s.mu.Unlock()
		}
	}
}

// canAccept says whether one more session may be accepted: there is a place, or one that is held can give its place up.
// The caller holds the mutex.
func (s *Subscription) canAccept() bool {
	return s.hasPlace() || s.credits.granted > 0 && s.idlest() != nil
}

// hasPlace says whether there is a place for one more session, and a credit. The caller holds the mutex.
func (s *Subscription) hasPlace() bool {
	stay, needy := len(s.sessions)-s.leavers, len(s.sessions)-s.credits.busy
	if s.leavers > 0 {
		needy = 0
		for _, p := range s.sessions {
			if p.leaving == nil && p.used == 0 {
				needy++
			}
		}
	}
	return stay < s.places() && needy < s.credits.free()
}

// idlest gives the session that has had nothing to do for longest, nil when all have. The caller holds the mutex.
func (s *Subscription) idlest() *sessionPump {
	if s.idlers == 0 {
		return nil
	}
	var found *sessionPump
	for _, p := range s.sessions {
		if p.isIdle() && (found == nil || p.lastActive.Before(found.lastActive)) {
			found = p
		}
	}
	return found
}

// retiring gives a session that is being given up and whose place nobody has yet, nil when there is none. The caller
// holds the mutex.
func (s *Subscription) retiring() *sessionPump {
	if s.leavers == 0 {
		return nil
	}
	for _, p := range s.sessions {
		if p.leaving != nil && p.successor == nil {
			return p
		}
	}
	return nil
}

// open begins with a session that was accepted. When there is no place it takes that of a session with nothing to do,
// and begins when that has been given up, so that the client never sees more sessions than it wants.
func (s *Subscription) open(session *semantics.Session) {
	s.mu.Lock()
	next, former := s.newPump(session)
	idlest, retiring := s.idlest(), s.retiring()
	switch {
	case former != nil && former.successor == nil:
		former.makeWayFor(next)
	case s.hasPlace() && retiring != nil && len(s.sessions) >= s.places():
		retiring.makeWayFor(next)
	case s.hasPlace():
		s.sessions[next.session.Lock] = next
		s.work.Go(next.run)
	case idlest != nil:
		idlest.makeWayFor(next)
	default: // meanwhile all have got something to do
		next = nil
	}
	s.mu.Unlock()
	if next == nil {
		s.refuse(session)
	}
}

// refuse gives a session back that there is no place for. If that fails it is free when its lock ends.
func (s *Subscription) refuse(session *semantics.Session) {
	_ = s.broker.CloseSession(context.WithoutCancel(s.life), s.Source(session.Lock))
}

// newPump makes a pump for a session that was accepted. The pump that held the same session, if there is one, has lost
// it. The caller holds the mutex.
func (s *Subscription) newPump(session *semantics.Session) (next, former *sessionPump) {
	now := time.Now()
	for _, p := range s.sessions {
		if p.session.ID == session.ID && (former == nil || former.isClosed) {
			former = p
		}
	}
	if former != nil && !former.isClosed {
		former.lose()
	}
	return &sessionPump{
		sub: s, session: session, source: s.Source(session.Lock), wake: make(chan struct{}, 1),
		lastActive: now, turn: now, endsAt: now.Add(s.lockFor),
	}, former
}

// CloseSession gives a session up: what was not settled is available again at once and nothing is counted. It does not
// block; the event SessionClosed tells when it is done. SESSION_LOCK_LOST when the subscription does not hold it.
func (s *Subscription) CloseSession(lock semantics.LockToken) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.sessions[lock]
	if p == nil {
		return semantics.SessionFailure(semantics.SessionLockLost, s.source.Path)
	}
	p.leave(SessionClosed)
	return nil
}
