package stream_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// onItsWay receives one message of the session that a client was answered with and that is not removed yet.
func (s *stand) onItsWay(id string) *delivery.Delivery {
	s.t.Helper()
	a, err := s.AcceptSession(s.t.Context(), "tales", broker.AcceptOptions{SessionID: id})
	s.ok(err)
	return s.removed(a.Source())
}

func (s *stand) removed(source semantics.Source) *delivery.Delivery {
	s.t.Helper()
	d, err := s.Receive(s.t.Context(), source, broker.ReceiveOptions{MaxMessages: 1, Mode: semantics.ReceiveAndDelete})
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

// A message that was lost on its way to the client delays nothing, although it is never removed.
func TestRECV_7_LostOnItsWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 2)
		p := s.subscribe("tales", func(o *stream.Options) {
			o.Mode, o.Credits, o.MaxSessions, o.SessionInFlight = semantics.ReceiveAndDelete, 2, 1, 2
		})
		e, err := p.event()
		s.ok(err)
		p.note(e) // the session; its messages wait for the client to read
		synctest.Wait()
		s.ok(s.store.Store.CloseSession(t.Context(), p.Source(p.opened["a"])))
		s.pass(testLock/3 + 2*time.Second) // a renewal finds out
		p.wants("-a(lost) +a a/1 a/2")
		s.wantPeeked("tales", "")
	})
}

// The close of a message's session is tried however long the wait for the message takes.
func TestSESS_21_ClosedAfterTheLongestWait(t *testing.T) {
	t.Parallel()
	for name, closes := range map[string]func(ctx context.Context, s *stand, a *broker.Acceptance) error{
		"drain":       func(ctx context.Context, s *stand, _ *broker.Acceptance) error { return s.ReleaseHeld(ctx) },
		"undelivered": func(ctx context.Context, _ *stand, a *broker.Acceptance) error { return a.Undelivered(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.send("tales", "a/1")
				a, err := s.AcceptSession(t.Context(), "tales", broker.AcceptOptions{SessionID: "a"})
				s.ok(err)
				d := s.removed(a.Source())
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				s.ok(closes(ctx, s, a))
				_, err = s.AcceptSession(t.Context(), "tales", broker.AcceptOptions{SessionID: "a"})
				s.ok(err)
				s.ok(d.Undelivered(t.Context()))
			})
		})
	}
}

// A client that went away while it waits for its own message closes nothing: the message would come again.
func TestSESS_21_CancelledCloseClosesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		d := s.onItsWay("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, "close", s.CloseSession(ctx, d.Source()), semantics.Cancelled)
		s.ok(d.Delivered(t.Context()))
		wantCode(t, "close again", s.CloseSession(ctx, d.Source()), semantics.Cancelled)
		s.wantPeeked("tales", "")
		s.ok(s.CloseSession(t.Context(), d.Source()))
	})
}

// What cannot be given back at the end keeps nothing else from it.
func TestSETTLE_10_ReleaseHeldTriesAll(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"Release", "CloseSession"} {
		t.Run(broken, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				for i := range 9 {
					name := fmt.Sprintf("orders%d", i)
					s.create(name, semantics.Options{})
					s.send(name, "1")
					_, err := s.Receive(t.Context(), semantics.Source{Path: name}, broker.ReceiveOptions{MaxMessages: 1})
					s.ok(err)
					_, err = s.AcceptSession(t.Context(), "tales", broker.AcceptOptions{SessionID: name})
					s.ok(err)
				}
				s.store.only = broken
				s.store.fail(errAway)
				err := s.ReleaseHeld(t.Context())
				wantCode(t, "release", err, semantics.StoreUnavailable)
				if text := err.Error(); text != errAway.Error() {
					t.Errorf("the same failure is told more than once: %s", text)
				}
				if n := s.Held(); n != 9 {
					t.Errorf("%d held, want 9", n)
				}
				for _, method := range []string{"Release", "CloseSession"} {
					if n := s.store.count(method); n != 9 {
						t.Errorf("%s was tried %d times, want 9", method, n)
					}
				}
			})
		})
	}
}

// A client that does not read its answer delays the end only for a bounded time.
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
