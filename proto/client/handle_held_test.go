package client

import (
	"context"
	"strings"
	"testing"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// holding is a held whose session "s" is open.
type holding struct {
	*held

	t       *testing.T
	started []string // tokens
}

func newHolding(t *testing.T, inFlight int32, isManual bool) *holding {
	t.Helper()
	h := &holding{t: t}
	of := &handling{open: &sidebusv1.SubscribeOpen{SessionInFlight: &inFlight}, isManual: isManual}
	h.held = newHeld(t.Context(), of, func(m *HandledMessage) {
		if h.mu.TryLock() {
			t.Errorf("%s was started while stop could return", m.token)
			h.mu.Unlock()
		}
		h.started = append(h.started, m.token)
	})
	h.sessionOpened(&sidebusv1.Session{SessionId: "tale", LockToken: "s"})
	return h
}

// delivers delivers messages of a session, or of none, and returns them.
func (h *holding) delivers(session string, tokens ...string) []*HandledMessage {
	h.t.Helper()
	var messages []*HandledMessage
	for _, token := range tokens {
		messages = append(messages, &HandledMessage{token: token, lost: make(chan struct{})})
	}
	h.delivered(session, messages)
	return messages
}

// newHoldingOfTwo returns a holding with two messages of its session. The first one was started.
func newHoldingOfTwo(t *testing.T) (h *holding, first, second *HandledMessage) {
	t.Helper()
	h = newHolding(t, 2, false)
	m := h.delivers("s", "1", "2")
	return h, m[0], m[1]
}

func (h *holding) wantStarted(tokens string) {
	h.t.Helper()
	if got := strings.Join(h.started, " "); got != tokens {
		h.t.Errorf("started %q, want %q", got, tokens)
	}
}

func (h *holding) wantNext(m, want *HandledMessage, wantGap bool) {
	h.t.Helper()
	if got, leavesGap := h.next(m); got != want || leavesGap != wantGap {
		h.t.Errorf("after %s comes %v, gap: %t; want %v, %t", m.token, got, leavesGap, want, wantGap)
	}
}

// ends notes that the handler of a message has returned, and settled it.
func (h *holding) ends(m *HandledMessage, isGivenBack bool) {
	h.t.Helper()
	if h.settled(m, isGivenBack) {
		h.t.Errorf("%s leaves a gap before its handler has returned", m.token)
	}
	h.returned(m)
}

func TestHeldSessionIsHandledInOrder(t *testing.T) {
	t.Parallel()
	h := newHolding(t, 2, false)
	m := append(h.delivers("s", "1", "2"), h.delivers("s", "3")...)
	for i, next := range []*HandledMessage{m[1], m[2], nil} {
		h.ends(m[i], false)
		h.wantNext(m[i], next, false)
	}
	h.wantStarted("1")
	h.delivers("s", "4")
	h.wantNext(h.delivers("", "a", "b")[0], nil, false)
	h.wantStarted("1 4 a b")
}

func TestHeldSessionWithAGap(t *testing.T) {
	t.Parallel()
	h, first, _ := newHoldingOfTwo(t)
	h.ends(first, true)
	h.wantNext(first, nil, true)
	h.delivers("s", "3")
	h.wantStarted("1")

	h = newHolding(t, 1, false) // nothing is behind the message
	first = h.delivers("s", "1")[0]
	h.ends(first, true)
	h.wantNext(first, nil, false)
	h.delivers("s", "1")
	h.wantStarted("1 1")
}

// A message that is given back after its handler has returned leaves a gap too: what is behind it is not handled any
// more, and a later settlement closes nothing.
func TestHeldSessionWithAGapAfterTheHandler(t *testing.T) {
	t.Parallel()
	h := newHolding(t, 3, true)
	m := h.delivers("s", "1", "2", "3")
	h.returned(m[0])
	h.wantNext(m[0], m[1], false)
	if !h.settled(m[0], true) {
		t.Error("the first message leaves no gap")
	}
	if !m[1].isLost() || m[1].ctx.Err() == nil {
		t.Errorf("behind the gap: lost: %t, %v", m[1].isLost(), m[1].ctx.Err())
	}
	h.ends(m[1], true)
	h.wantNext(m[1], nil, false)
	if h.settled(m[0], true) || h.settled(m[1], true) {
		t.Error("the session is closed twice")
	}
	h.delivers("s", "4")
	h.wantStarted("1")
}

// A session that has ended needs no end.
func TestHeldSessionWithAGapAfterItsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *holding, m *HandledMessage){
		"closed": func(h *holding, _ *HandledMessage) {
			h.sessionClosed(&sidebusv1.SubscribeSessionClosed{SessionId: "tale", SessionLockToken: "s"})
		},
		"lost": func(h *holding, m *HandledMessage) { h.sessionLost(m.session) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, m, _ := newHoldingOfTwo(t)
			end(h, m)
			h.ends(m, true)
			h.wantNext(m, nil, false)
			h.delivers("s", "3")
			h.wantStarted("1")
		})
	}
}

// What the first settlement of a message did counts: a second one finds its lock lost.
func TestHeldMessageIsSettledOnce(t *testing.T) {
	t.Parallel()
	h, first, second := newHoldingOfTwo(t)
	h.settled(first, false)
	h.ends(first, true)
	h.wantNext(first, second, false)
}

// A message that could not be settled keeps its lock: what is behind it waits for the end of the session.
func TestHeldSessionBehindAnUnsettledMessage(t *testing.T) {
	t.Parallel()
	h, first, _ := newHoldingOfTwo(t)
	h.returned(first)
	h.wantNext(first, nil, false)
	h.delivers("s", "3")
	h.wantStarted("1")
}

// A session is closed while a handler has a message of it: that message is lost, the one that waits is dropped, and
// others stay.
func TestHeldSessionClosed(t *testing.T) {
	t.Parallel()
	h, of, _ := newHoldingOfTwo(t)
	other := h.delivers("", "a")[0]
	for range 2 {
		h.sessionClosed(&sidebusv1.SubscribeSessionClosed{SessionId: "tale", SessionLockToken: "s"})
		h.locksLost([]string{"1", "unknown"})
	}
	if cause := context.Cause(of.ctx); cause == nil || !strings.Contains(cause.Error(), `session "tale"`) {
		t.Errorf("the context ended because of %v", cause)
	}
	if !of.isLost() || other.isLost() || other.ctx.Err() != nil {
		t.Errorf("lost: %t, and the other: %t, %v", of.isLost(), other.isLost(), other.ctx.Err())
	}
	h.settled(of, false) // all the same
	h.returned(of)
	if !h.isSettled(of) {
		t.Error("not settled")
	}
	h.wantNext(of, nil, false)
	h.delivers("s", "3")
	h.wantStarted("1 a")
}

// The loss of a lock counts for as long as the message can be settled.
func TestHeldLocksLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isManual, isSettled, isLost bool
	}{
		"returned":                  {false, false, false},
		"manual, returned":          {true, false, true},
		"manual, settled, returned": {true, true, false},
	} {
		h := newHolding(t, 1, c.isManual)
		m := h.delivers("", "a")[0]
		if c.isSettled {
			h.settled(m, false)
		}
		h.returned(m)
		h.locksLost([]string{"a"})
		if m.isLost() != c.isLost {
			t.Errorf("%s: lost: %t, want %t", name, m.isLost(), c.isLost)
		}
	}
	h := newHolding(t, 1, true)
	m := h.delivers("", "a")[0]
	h.returned(m)
	h.settled(m, false) // later
	h.locksLost([]string{"a"})
	if m.isLost() {
		t.Error("lost although it was settled")
	}
}

func TestHeldStops(t *testing.T) {
	t.Parallel()
	h, first, _ := newHoldingOfTwo(t)
	h.stop()
	h.delivers("", "a")
	h.wantStarted("1")
	h.wantNext(first, nil, false)
}
