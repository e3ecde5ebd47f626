package semantics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// onItsWay receives one message of the session that a client was answered with and that is not removed yet.
func (s *stand) onItsWay(id string) *semantics.Delivery {
	s.t.Helper()
	a, err := s.AcceptSession(s.t.Context(), "tales", semantics.AcceptOptions{SessionID: id})
	s.ok(err)
	return s.removed(a.Source())
}

func (s *stand) removed(source semantics.Source) *semantics.Delivery {
	s.t.Helper()
	d, err := s.Receive(s.t.Context(), source, semantics.ReceiveOptions{MaxMessages: 1, Mode: semantics.ReceiveAndDelete})
	s.ok(err)
	if len(d.Messages) != 1 {
		s.t.Fatalf("got %d messages, want 1", len(d.Messages))
	}
	return d
}

// A client that has its answer may close the session before the message is removed: the close is not to bring it back.
func TestRECV_7_CloseWaitsForRemoval(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		d := s.onItsWay("a")
		closed := make(chan error, 1)
		go func() { closed <- s.CloseSession(t.Context(), d.Source()) }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Fatal("closed while a message was on its way")
		}
		s.ok(d.Delivered(t.Context()))
		s.ok(<-closed)
		s.wantPeeked("tales", "")
	})
}

func TestRECV_7_NextReceiveWaitsForRemoval(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) { // one message in flight at a time
		s.send("tales", "a/1", "a/2")
		d := s.onItsWay("a")
		go func() {
			synctest.Wait()
			_ = d.Delivered(t.Context())
		}()
		s.ok(s.removed(d.Source()).Delivered(t.Context()))
		s.wantPeeked("tales", "")
	})
}

// A client that does not read its answer holds up nobody for long.
func TestRECV_7_CloseDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		d := s.onItsWay("a")
		began := time.Now()
		s.ok(s.CloseSession(t.Context(), d.Source()))
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("waited %s", took)
		}
		s.ok(d.Undelivered(t.Context()))
		s.wantPeeked("tales", "a/1:0")
	})
}
