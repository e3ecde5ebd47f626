package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// AcceptSession implements semantics.Sessions.
func (s *Store) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	q, _, now, unlock, err := s.openToReceive(ctx, semantics.Source{Path: path}, forSessions)
	defer unlock()
	if err != nil {
		return nil, err
	}
	if on := q.sessions[id]; on != nil && !on.acceptable() {
		return nil, semantics.SessionFailure(semantics.SessionCannotBeLocked, q.name)
	}
	return q.hold(q.session(id), now), nil
}

// AcceptNextSession implements semantics.Sessions.
func (s *Store) AcceptNextSession(
	ctx context.Context, path string, register semantics.Register,
) (*semantics.Session, time.Duration, error) {
	source := semantics.Source{Path: path}
	q, _, now, unlock, err := s.openToReceive(ctx, source, forNextSession)
	defer unlock()
	if err != nil {
		return nil, 0, err
	}
	next := q.longestReady()
	if register == semantics.RegisterAlways || register == semantics.RegisterIfEmpty && next == nil {
		s.waiting[source.Fold()] = true
	}
	if next == nil {
		return nil, q.recheckAfter(now), nil
	}
	return q.hold(next, now), q.recheckAfter(now), nil
}

// forNextSession is the kind of AcceptNextSession (RR-5).
func forNextSession(q *queue, source semantics.Source) error {
	if q.hasSessions(source) && q.options.AcceptNext == semantics.AcceptNextForbidden {
		return semantics.AcceptNextRefused(q.name)
	}
	return forSessions(q, source)
}

// longestReady returns the session that has been ready longest, of one instant the one with the first id (SESS-13).
func (q *queue) longestReady() *session {
	var first *session
	for _, on := range q.sessions {
		if on.ready() && (first == nil || cmp.Or(on.readyAt.Compare(first.readyAt), cmp.Compare(on.id, first.id)) < 0) {
			first = on
		}
	}
	return first
}

// hold locks a session that is free.
func (q *queue) hold(on *session, now time.Time) *semantics.Session {
	on.token, on.lockedUntil = semantics.NewSessionToken(semantics.SidecarTag{}), q.lockEnd(now)
	q.tidy(now)
	q.expect(on.due())
	return &semantics.Session{ID: on.id, Lock: on.token, LockedUntil: on.lockedUntil, State: on.copyOfState()}
}

// openHeld is openToSettle for a verb on a held session.
func (s *Store) openHeld(ctx context.Context, source semantics.Source) (*queue, *session, time.Time, func(), error) {
	q, in, now, unlock, lost, err := s.openToSettle(ctx, source, forHeld)
	return q, in.held, now, unlock, cmp.Or(err, lost)
}

// RenewSessionLock implements semantics.Sessions.
func (s *Store) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	q, held, now, unlock, err := s.openHeld(ctx, source)
	defer unlock()
	if err != nil {
		return time.Time{}, err
	}
	held.lockedUntil = q.lockEnd(now)
	for _, m := range q.messagesOf(held.id) {
		if m.locked() {
			m.lockedUntil = held.lockedUntil
		}
	}
	q.expect(held.due()) // earlier than before when LockDuration was shortened
	return held.lockedUntil, nil
}

// CloseSession implements semantics.Sessions. The messages are all given back before one of them may expire.
func (s *Store) CloseSession(ctx context.Context, source semantics.Source) error {
	q, held, now, unlock, err := s.openHeld(ctx, source)
	defer unlock()
	if err != nil {
		return err
	}
	var freed []*message
	s.wakingFor(q, now, func() {
		held.unlock()
		for _, m := range q.messagesOf(held.id) {
			if m.locked() {
				q.free(m, now, false, now)
				freed = append(freed, m)
			}
		}
		for _, m := range freed {
			if m.in == &q.main {
				q.decide(m, now)
				q.expect(m.due())
			}
		}
	})
	return nil
}

// endSessions ends the locks of sessions that have run out (SESS-22). Their messages have been given back by endMain.
func (q *queue) endSessions(now time.Time) {
	for _, on := range q.sessions {
		if on.isHeld() && !on.holds(now) {
			q.used(on.lockedUntil)
			on.unlock()
		}
	}
}

// UnblockSession implements semantics.Sessions.
func (s *Store) UnblockSession(ctx context.Context, path, id string) error {
	q, now, unlock, err := s.openSessions(ctx, path)
	defer unlock()
	if err != nil {
		return err
	}
	if on := q.sessions[id]; on != nil {
		s.wakingFor(q, now, func() { on.blocked = false })
	}
	return nil
}

// DeadLetterRest implements semantics.Sessions.
func (s *Store) DeadLetterRest(ctx context.Context, path, id string) error {
	q, now, unlock, err := s.openSessions(ctx, path)
	defer unlock()
	if err != nil {
		return err
	}
	reason, description := semantics.ReasonSession, semantics.DescriptionSession
	s.wakingFor(q, now, func() {
		for _, m := range q.messagesOf(id) {
			if !m.locked() {
				q.main.remove(m)
				q.deadLetterIn(&q.dead, m, now, semantics.DeadLetterTexts{Reason: &reason, Description: &description})
			}
		}
		if on := q.sessions[id]; on != nil {
			on.blocked = false
		}
	})
	return nil
}

// openSessions opens a queue for a verb on sessions that is neither held back by the status nor counts as activity, and
// processes what is due.
func (s *Store) openSessions(ctx context.Context, path string) (*queue, time.Time, func(), error) {
	q, now, unlock, err := s.open(ctx, path)
	if err == nil {
		err = forSessions(q, semantics.Source{Path: path})
	}
	if err != nil {
		return nil, now, unlock, err
	}
	s.look(q, now)
	return q, now, unlock, nil
}
