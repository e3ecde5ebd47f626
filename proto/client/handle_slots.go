package client

import (
	"context"
	"sync"
)

// slots bound the handlers that run at a time: as many as there are credits, and one of each session. A handler may
// outlive the lock of its message, its session and its stream, so the sidecar's bounds alone do not suffice.
type slots struct {
	taken chan struct{} // has one for each handler that runs

	mu       sync.Mutex
	sessions map[string]chan struct{} // whose handlers run; closed when the handler has returned
}

func newSlots(credits int) slots {
	return slots{taken: make(chan struct{}, max(credits, 1)), sessions: map[string]chan struct{}{}}
}

// take waits for a slot for the handler of a message of a session, "" for none. It reports false when ctx has ended and
// there is none.
func (s *slots) take(ctx context.Context, session string) bool {
	if !s.takeSession(ctx, session) {
		return false
	}
	select {
	case s.taken <- struct{}{}:
		if ctx.Err() == nil {
			return true
		}
		<-s.taken
	case <-ctx.Done():
	}
	s.leaveSession(session)
	return false
}

func (s *slots) leave(session string) {
	<-s.taken
	s.leaveSession(session)
}

func (s *slots) takeSession(ctx context.Context, session string) bool {
	for session != "" {
		s.mu.Lock()
		free, isTaken := s.sessions[session]
		if !isTaken {
			s.sessions[session] = make(chan struct{})
		}
		s.mu.Unlock()
		if !isTaken {
			break
		}
		select {
		case <-free:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (s *slots) leaveSession(session string) {
	if session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.sessions[session])
	delete(s.sessions, session)
}
