package client

import (
	"context"
	"fmt"
)

// handle calls the handler for one message, as soon as it may run, and settles the message. One that does not get to
// its handler is given back with the stream, or was lost.
func (s *handleStream) handle(m *HandledMessage) {
	defer s.returned(m)
	session := ""
	if m.session != nil {
		session = m.session.id
	}
	if !s.slots.take(m.ctx, session) {
		return
	}
	defer s.slots.leave(session)
	var err error
	if s.removes {
		err = s.handleRemoved(m)
	} else {
		err = m.conclude(s.handler(m.ctx, m))
	}
	if err != nil {
		s.failed(fmt.Errorf("message %d of %s: %w", m.SequenceNumber, s.open.GetSource(), err))
	}
}

// handleRemoved removes a message and then calls the handler, the only one to have it from now on.
func (s *handleStream) handleRemoved(m *HandledMessage) error {
	if m.session == nil && s.open.GetPrefetch() == 0 {
		// The removal frees the credit. What came for it would wait for the handler, though another receiver may have
		// time.
		s.want(-1)
		defer s.want(1)
	}
	ctx, cancel := s.settling()
	err := m.Complete(ctx)
	cancel()
	if err != nil {
		return err
	}
	m.LockToken, m.LockedUntil = "", nil
	if err = s.handler(context.WithoutCancel(m.ctx), m); s.isManual {
		return err
	}
	return nil
}

// book notes that a message is in flight. The caller holds the mutex.
func (s *handleStream) book(m *HandledMessage) {
	m.ctx, m.cancel = context.WithCancelCause(s.ctx)
	s.inFlight[m.token] = m
}

// settled notes that a message is settled, or can no longer be.
func (s *handleStream) settled(m *HandledMessage, isGivenBack bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.isSettled, m.isGivenBack = true, m.isGivenBack || isGivenBack
	if m.hasReturned {
		delete(s.inFlight, m.token)
	}
}

// returned notes that the handler of a message has done with it, or does not get it.
func (s *handleStream) returned(m *HandledMessage) {
	m.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.hasReturned = true
	if m.isSettled || !s.isManual {
		delete(s.inFlight, m.token)
	}
}

// lose notes that a message in flight can no longer be settled. The caller holds the mutex.
func (s *handleStream) lose(m *HandledMessage, why error) {
	delete(s.inFlight, m.token)
	m.cancel(why)
	close(m.lost)
}
