package sidebusv1

import (
	"context"
	"sync"
)

// places bound the handlers that run at a time: as many as there are credits, and one of each session. A handler may outlive the lock
// of its message, its session and its stream, so the sidecar's bounds alone do not suffice.
type places struct {
	taken chan struct{} // has one for each handler that runs

	mu       sync.Mutex
	sessions map[string]chan struct{} // whose handlers run; closed when that is over
}

func newPlaces(credits int) places {
	return places{taken: make(chan struct{}, max(credits, 1)), sessions: map[string]chan struct{}{}}
}

// take waits for a place for the handler of a message of a session, "" for none. False: ctx has ended, and there is none.
func (p *places) take(ctx context.Context, session string) bool {
	if !p.takeSession(ctx, session) {
		return false
	}
	select {
	case p.taken <- struct{}{}:
		if ctx.Err() == nil {
			return true
		}
		<-p.taken
	case <-ctx.Done():
	}
	p.leaveSession(session)
	return false
}

func (p *places) leave(session string) {
	<-p.taken
	p.leaveSession(session)
}

func (p *places) takeSession(ctx context.Context, session string) bool {
	for session != "" {
		p.mu.Lock()
		over, isTaken := p.sessions[session]
		if !isTaken {
			p.sessions[session] = make(chan struct{})
		}
		p.mu.Unlock()
		if !isTaken {
			break
		}
		select {
		case <-over:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (p *places) leaveSession(session string) {
	if session == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.sessions[session])
	delete(p.sessions, session)
}
