package client

import (
	"context"
	"fmt"
)

// handleFrom handles a message, and then one by one those of its session that wait.
func (s *handleStream) handleFrom(m *HandledMessage) {
	for m != nil {
		s.handle(m)
		following, leavesGap := s.held.next(m)
		if leavesGap {
			s.closeSession(m.session)
		}
		m = following
	}
}

// handle waits for a slot, calls the handler for one message, and settles the message. If the message gets no slot, the
// sidecar makes it available again when the stream ends, or its lock was lost.
func (s *handleStream) handle(m *HandledMessage) {
	defer s.held.returned(m)
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
		s.onError(fmt.Errorf("message %d of %s: %w", m.SequenceNumber, s.open.GetSource(), err))
	}
}

// handleRemoved removes a message and then calls the handler. No other handler can get the message any more.
func (s *handleStream) handleRemoved(m *HandledMessage) error {
	if m.session == nil && s.open.GetPrefetch() == 0 {
		// The removal frees the credit. A message that came for it would wait for this handler, while another receiver
		// might be free.
		s.addCredits(-1)
		defer s.addCredits(1)
	}
	ctx, cancel := s.settlementContext()
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
