package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// sessions is a store with the queue orders, which requires sessions, on a clock that the test moves.
type sessions struct {
	*swept
	t     *testing.T
	clock *storetest.Clock
}

func openSessions(t *testing.T, changes ...func(*semantics.Options)) *sessions {
	t.Helper()
	clock := storetest.NewClock()
	s := &sessions{t: t, clock: clock, swept: openSwept(t, redisstore.Options{Now: clock.Now})}
	s.create(t, func(o *semantics.Options) {
		o.RequiresSession = true
		for _, change := range changes {
			change(o)
		}
	})
	return s
}

// fails ends the test when a call failed that must not.
func (s *sessions) fails(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// part is a message of a session.
func part(session, id string) *semantics.Message {
	return &semantics.Message{SessionID: session, MessageID: id}
}

// sendTo sends n messages of one byte to a session, one call each.
func (s *sessions) sendTo(session string, n int) {
	s.t.Helper()
	for range n {
		s.send(s.t, part(session, "m"))
	}
}

func (s *sessions) accept(id string) semantics.Source {
	s.t.Helper()
	session, err := s.AcceptSession(s.t.Context(), "orders", id)
	s.fails("accept "+id, err)
	return semantics.Source{Path: "orders", SessionLock: session.Lock}
}

// acceptNext gives the id of the next session, which stays held, or "" when none is ready.
func (s *sessions) acceptNext() string {
	s.t.Helper()
	session, _, err := s.AcceptNextSession(s.t.Context(), "orders", semantics.RegisterNever)
	s.fails("accept next", err)
	if session == nil {
		return ""
	}
	return session.ID
}

func (s *sessions) receiveIn(source semantics.Source, limit int) []*semantics.Received {
	s.t.Helper()
	batch, err := s.Receive(s.t.Context(), source, limit, semantics.RegisterNever)
	s.fails("receive", err)
	return batch.Messages
}

func tokensOf(messages []*semantics.Received) []semantics.LockToken {
	var tokens []semantics.LockToken
	for _, m := range messages {
		tokens = append(tokens, m.LockToken)
	}
	return tokens
}

// settle checks that a verb settles everything.
func (s *sessions) settle(codes []semantics.Code, err error) {
	s.t.Helper()
	s.fails("settle", err)
	for _, code := range codes {
		if code != "" {
			s.t.Fatalf("settle: %v", codes)
		}
	}
}

func (s *sessions) closes(source semantics.Source) {
	s.t.Helper()
	s.fails("close", s.CloseSession(s.t.Context(), source))
}

func (s *sessions) setState(source semantics.Source, data []byte) {
	s.t.Helper()
	_, err := s.SetSessionState(s.t.Context(), source, data, nil)
	s.fails("set state", err)
}

// audit checks that all that is kept fits together.
func (s *sessions) audit() {
	s.t.Helper()
	s.fails("audit", audit.New(s.raw, s.namespace).Audit(s.t.Context(), "orders"))
}

func ofMinutes(n int) *time.Duration { d := time.Duration(n) * time.Minute; return &d }
