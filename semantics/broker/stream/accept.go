package stream

import (
	"context"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// acceptSessions accepts sessions until the subscription ends: when there is a place, or when an idle session can give
// its place to one that is ready.
func (s *Subscription) acceptSessions() {
	pause, together := loop.FirstPause, 0
	for s.awaitPlace() {
		if together = min(2*together, mostTogether, s.account.Places()); together > 1 {
			if !s.acceptTogether(together) {
				together = 0
			}
			continue
		}
		session, err := s.acceptOne()
		if err != nil {
			if !s.survives(err, &pause) {
				return
			}
			continue
		}
		pause = loop.FirstPause
		if session != nil {
			s.troubled.Store(false)
			s.open(session)
			together = 1
		}
	}
}

// mostTogether is how many sessions are accepted at the same time, which shares scripts. It is few, so that sidecars
// that begin together have about as many sessions each.
const mostTogether = 16

// acceptTogether accepts so many sessions that are ready, and reports whether there were enough.
func (s *Subscription) acceptTogether(n int) bool {
	var found atomic.Int64
	loop.Each(make([]struct{}, n), func(struct{}) {
		session, err := s.broker.Accept(s.life, s.source.Path, 0)
		if err == nil && session != nil {
			found.Add(1)
			s.open(session)
		}
	})
	return int(found.Load()) == n
}

// awaitPlace waits until a session may be accepted. It returns false when the subscription ends.
func (s *Subscription) awaitPlace() bool {
	for {
		isDraining := s.isDraining()
		mayAccept, held := s.account.MayAccept()
		switch {
		case s.life.Err() != nil:
			return false
		case isDraining && held == 0:
			s.account.Stop(semantics.Draining())
			return false
		case mayAccept && !isDraining:
			return true
		}
		s.pass(s.account.PlaceFree, isDraining, nil)
	}
}

// acceptOne waits for a session that is ready. It returns nil when there is no place for the session any more.
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
		case <-s.account.PlaceFree:
			if mayAccept, _ := s.account.MayAccept(); !mayAccept {
				cancel()
			}
		}
	}
}

// open opens a session that was accepted, now or when another one has given up its place.
func (s *Subscription) open(accepted *semantics.Session) {
	if s.account.Open(accepted) {
		s.refuse(accepted)
	}
}

// refuse closes a session for which there is no place. If that fails, it is free when its lock ends.
func (s *Subscription) refuse(session *semantics.Session) {
	_ = s.broker.CloseSession(context.WithoutCancel(s.life), s.Source(session.Lock))
}

// CloseSession closes a session: its unsettled messages are available again at once and nothing is counted. It does not
// block; the event SessionClosed reports the end. It returns SESSION_LOCK_LOST if the subscription does not hold the
// session.
func (s *Subscription) CloseSession(lock semantics.LockToken) error {
	if !s.account.CloseSession(lock) {
		return semantics.SessionFailure(semantics.SessionLockLost, s.source.Path)
	}
	return nil
}
