package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// held is what one stream holds: its sessions, and the messages that are handled or wait in their session. Its mutex
// also guards the fields of handledSession and HandledMessage that say so; only this file uses these. Each method is a
// whole step and does not block. The functions from begin on are parts of steps: they run while the mutex is locked.
type held struct {
	handlers context.Context       //nolint:containedctx // parent of the handlers' contexts; ends with the stream
	start    func(*HandledMessage) // starts a goroutine that handles a message, then what next returns

	isManual      bool
	deliversAhead bool // messages of a session come while an earlier one is handled

	mu        sync.Mutex
	isStopped bool                       // no message is started any more
	sessions  map[string]*handledSession // by token
	// inFlight has the messages that were started, by token. One leaves when its lock is lost, or when its handler has
	// returned and, with manual settlement, it is settled.
	inFlight map[string]*HandledMessage
}

// handledSession is a session of a stream.
type handledSession struct {
	id, token string

	// Guarded by the mutex of held.
	state   []byte
	isBusy  bool              // a goroutine handles its messages
	waiting []*HandledMessage // for that goroutine
}

func newHeld(handlers context.Context, h *handling, start func(*HandledMessage)) *held {
	return &held{
		handlers: handlers, start: start,
		isManual: h.isManual, deliversAhead: h.open.GetSessionInFlight() > 1,
		sessions: map[string]*handledSession{}, inFlight: map[string]*HandledMessage{},
	}
}

// stop ends the starting of messages: none is started after it has returned.
func (h *held) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isStopped = true
}

func (h *held) hasStopped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isStopped
}

func (h *held) sessionOpened(opened *sidebusv1.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[opened.GetLockToken()] = &handledSession{
		id: opened.GetSessionId(), token: opened.GetLockToken(),
		state: opened.State, //nolint:protogetter // nil and empty differ (SESS-33)
	}
}

// sessionClosed forgets a session.
func (h *held) sessionClosed(closed *sidebusv1.SubscribeSessionClosed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := fmt.Errorf("the session %q is not held any more: %s", closed.GetSessionId(), closed.GetWhy())
	h.drop(closed.GetSessionLockToken(), why)
}

// sessionLost forgets a session whose lock is lost. A request may learn that before sessionClosed does.
func (h *held) sessionLost(session *handledSession) {
	if session == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(session.token, fmt.Errorf("the lock of the session %q is lost", session.id))
}

func (h *held) locksLost(tokens []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, token := range tokens {
		if m := h.inFlight[token]; m != nil {
			h.lockLost(m, errors.New("the lock of the message is lost"))
		}
	}
}

// delivered starts messages, or lets them wait if another one of their session is handled. An empty token means that
// they have no session.
func (h *held) delivered(sessionToken string, messages []*HandledMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	session := h.sessions[sessionToken]
	if h.isStopped || session == nil && sessionToken != "" {
		return // they become available again when the stream ends, or did so with the session
	}
	for _, m := range messages {
		m.session = session
		if session != nil && session.isBusy {
			session.waiting = append(session.waiting, m)
			continue
		}
		if session != nil {
			session.isBusy = true
		}
		h.begin(m)
		h.start(m) // while the mutex is locked, so that none starts after stop
	}
}

// next returns the message to handle after m, in the goroutine of m. It returns nil if no message of the session waits.
// If the settlement of m has failed for good, m keeps its lock, and what is behind it waits until the session ends.
//
// For leavesGap see settled.
func (h *held) next(m *HandledMessage) (following *HandledMessage, leavesGap bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	session := m.session
	switch {
	case session == nil:
		return nil, false
	case h.leavesGap(m):
		return nil, true
	case !m.isSettled && !h.isManual && h.deliversAhead:
		return nil, false
	case h.isStopped || len(session.waiting) == 0:
		session.isBusy = false
		return nil, false
	}
	following = session.waiting[0]
	session.waiting = session.waiting[1:]
	h.begin(following)
	return following, false
}

// settled notes that a message is settled, or can no longer be.
//
// leavesGap reports that its handler has returned and that it is available again, while messages behind it may have
// been delivered. To keep the order, the caller has to close the session: all of them are delivered again.
func (h *held) settled(m *HandledMessage, isGivenBack bool) (leavesGap bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !m.isSettled { // what a second settlement returns says nothing of the message
		m.isSettled, m.isGivenBack = true, isGivenBack
	}
	if !m.hasReturned {
		return false // next reports it
	}
	delete(h.inFlight, m.token)
	return h.leavesGap(m)
}

func (h *held) isSettled(m *HandledMessage) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return m.isSettled
}

// returned notes that the handler of a message has returned, or does not get the message.
func (h *held) returned(m *HandledMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.cancel(nil)
	m.hasReturned = true
	if m.isSettled || !h.isManual {
		delete(h.inFlight, m.token)
	}
}

func (h *held) sessionState(session *handledSession) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return session.state
}

func (h *held) setSessionState(session *handledSession, state []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	session.state = state
}

// begin adds a message to those in flight.
func (h *held) begin(m *HandledMessage) {
	m.ctx, m.cancel = context.WithCancelCause(h.handlers)
	h.inFlight[m.token] = m
}

// leavesGap reports whether a message that is available again had others behind it, and then drops its session.
func (h *held) leavesGap(m *HandledMessage) bool {
	session := m.session
	if !m.isGivenBack || !h.deliversAhead || session == nil || h.sessions[session.token] == nil {
		return false
	}
	h.drop(session.token, fmt.Errorf("an earlier message of the session %q is to be handled again", session.id))
	return true
}

// drop forgets a session. Its messages that wait are delivered again; one in flight can no longer be settled.
func (h *held) drop(token string, why error) {
	if session := h.sessions[token]; session != nil {
		session.waiting = nil
		delete(h.sessions, token)
	}
	for _, m := range h.inFlight {
		if m.session != nil && m.session.token == token {
			h.lockLost(m, why)
		}
	}
}

// lockLost removes a message from those in flight and ends its context.
func (h *held) lockLost(m *HandledMessage, why error) {
	delete(h.inFlight, m.token)
	m.cancel(why)
	close(m.lost)
}
