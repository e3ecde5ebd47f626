package stream_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

func TestSESS_22_LostSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1")
		p := s.subscribe("tales", credits(4))
		p.takes()
		p.complete("b/1")
		for _, id := range []string{"a", "b"} { // another client ends their locks, as an operator may
			s.ok(s.store.Store.CloseSession(t.Context(), p.Source(p.opened[id])))
		}
		p.wants("-b(lost) -a(lost) +a a/1") // b waits, so it sees it at once; a comes again
		p.complete("a/1")
	})
}

// If another client has the session, the next renewal finds that out.
func TestSESS_22_LossFoundByRenewal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", nil)
		p.wants("+a a/1")
		s.ok(s.store.Store.CloseSession(t.Context(), p.Source(p.opened["a"])))
		_, err := s.store.Store.AcceptSession(t.Context(), "tales", "a")
		s.ok(err)
		p.wants("")
		s.pass(testLock/3 + 2*time.Second)
		p.wants("-a(lost)")
	})
}

// A settlement that finds the session lost notifies the subscription.
func TestSESS_22_LossFoundBySettling(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", nil)
		p.wants("+a a/1")
		s.ok(s.store.Store.CloseSession(t.Context(), p.Source(p.opened["a"])))
		if codes := p.settle(s.Complete, "a/1"); codes != string(semantics.SessionLockLost) {
			t.Errorf("got %q", codes)
		}
		p.wants("-a(lost) +a a/1")
		p.complete("a/1")
	})
}

func TestSESS_21_ClosedByTheClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 4)
		p := s.subscribe("tales", sessions(1, 3))
		p.wants("+a a/1 a/2 a/3")
		p.complete("a/1")
		p.wants("a/4")
		lock, old := p.opened["a"], p.unsettled["a/2"]
		s.ok(p.CloseSession(lock))
		p.wants("-a(closed) +a a/2 a/3 a/4")
		s.wantPeeked("tales", "a/2:0 a/3:0 a/4:0")
		wantCode(t, "close twice", p.CloseSession(lock), semantics.SessionLockLost)
		p.unsettled["a/2"] = old
		if codes := p.settle(s.Complete, "a/2"); codes != string(semantics.SessionLockLost) {
			t.Errorf("a token of the closed session: %q", codes)
		}
	})
}

func TestSESS_21_ClosedWhileItWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", nil)
		p.wants("+a a/1")
		p.complete("a/1")
		p.wants("")
		s.ok(p.CloseSession(p.opened["a"]))
		p.wants("-a(closed)")
	})
}
