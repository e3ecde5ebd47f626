package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// A session of many messages expires as a whole, but no script ends more than some of them. From the first one on
// nothing of it can be had, whoever asks, and another sidecar goes on when the first is gone.
func TestTTL_23_ALargeSessionExpiresInSlices(t *testing.T) {
	t.Parallel()
	const messages, atOnce = 1500, 250
	for name, trigger := range map[string]func(s *sessions, held semantics.Source, got *semantics.Received){
		"whoever looks": func(*sessions, semantics.Source, *semantics.Received) {},
		"close":         func(s *sessions, held semantics.Source, _ *semantics.Received) { s.closes(held) },
		"abandon": func(s *sessions, held semantics.Source, got *semantics.Received) {
			s.settle(s.Abandon(s.t.Context(), held, []semantics.LockToken{got.LockToken}, semantics.AbandonOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSessions(t, func(o *semantics.Options) {
				o.SessionExpiryMode, o.DeadLetteringOnMessageExpiration = semantics.ExpireSession, true
				o.LockDuration, o.SessionInFlight = 5*time.Minute, 10
			})
			first, third := part("a", "first"), part("a", "third")
			first.TimeToLive, third.TimeToLive = ofMinutes(1), ofMinutes(1)
			s.send(t, first)
			s.sendTo("a", 1)
			s.send(t, third)
			for left := messages; left > 0; left -= 500 {
				var some []*semantics.Message
				for range 500 {
					some = append(some, part("a", "m"))
				}
				s.send(t, some...)
			}
			held := s.accept("a")
			got := s.receiveIn(held, 2)
			s.settle(s.Defer(t.Context(), held, tokensOf(got[1:]), nil))
			s.clock.Advance(time.Minute)

			ended := int64(0)
			step := func(what string, do func()) { // which runs a script or two
				t.Helper()
				do()
				now := s.raw.XLen(t.Context(), s.key("dead_log")).Val()
				if now-ended < 1 || now-ended > 2*atOnce+3 {
					t.Fatalf("%s: it ended %d messages", what, now-ended)
				}
				ended = now
				s.audit()
			}
			step("trigger", func() {
				trigger(s, held, got[0])
				if session := s.acceptNext(); session != "" {
					t.Fatalf("session %q can be accepted", session)
				}
			})
			step("receive by number", func() {
				if name == "close" {
					held = s.accept("a")
				}
				if _, err := s.ReceiveByNumber(t.Context(), held, semantics.Deferred, []int64{2}); semantics.CodeOf(err) != semantics.MessageNotFound {
					t.Fatalf("a deferred message of it: %v", err)
				}
			})
			step("receive", func() {
				if more := s.receiveIn(held, 9); len(more) > 0 {
					t.Fatalf("%d messages of it can be had", len(more))
				}
			})
			// Another sidecar goes on, whatever becomes of this one.
			other := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: s.clock.Now})
			s.fails("sweep", other.SweepOnce(context.WithoutCancel(t.Context()), brokerOver(other)))
			s.audit()
			locked := int64(0)
			if name == "whoever looks" {
				locked = 1
			}
			if n := s.raw.XLen(t.Context(), s.key("dead_log")).Val(); n != messages+3-locked {
				t.Fatalf("%d messages ended", n)
			}
			s.sendTo("a", 1)
			if more := s.receiveIn(held, 9); len(more) != 1 || more[0].SequenceNumber != messages+4 {
				t.Fatalf("after it the session has %d messages", len(more))
			}
		})
	}
}
