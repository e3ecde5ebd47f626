package stream_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// sessions subscribes to sessions, as many at a time and in flight as given, with credits for all.
func sessions(most, inFlight int) func(o *stream.Options) {
	return func(o *stream.Options) {
		o.MaxSessions, o.SessionInFlight, o.Credits = most, inFlight, most*inFlight
	}
}

func TestSESS_25_InOrderOneByOne(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 3)
		s.sendMany("tales", "b/", 2)
		p := s.subscribe("tales", sessions(8, 1))
		p.wants("+a a/1 +b b/1")
		p.complete("a/1")
		p.wants("a/2")
		p.complete("b/1")
		p.wants("b/2")
		p.complete("a/2", "b/2")
		p.wants("a/3")
		p.complete("a/3")
		p.wants("")
	})
}

func TestSESS_27_SeveralInFlight(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 6)
		p := s.subscribe("tales", sessions(1, 3))
		p.wants("+a a/1 a/2 a/3")
		p.complete("a/2")
		p.wants("a/4")
		p.complete("a/1", "a/3")
		p.wants("a/5 a/6")
	})
}

// The queue's own bound holds too.
func TestSESS_27_TheQueueBoundsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.change("tales", semantics.Options{SessionInFlight: 2}, "sessionInFlight")
		s.sendMany("tales", "a/", 4)
		p := s.subscribe("tales", sessions(1, 3))
		p.wants("+a a/1 a/2")
		p.complete("a/1")
		p.wants("a/3")
	})
}

func TestSESS_28_AbandonedComesNext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 5)
		p := s.subscribe("tales", sessions(1, 3))
		p.wants("+a a/1 a/2 a/3")
		p.abandon("a/2")
		p.wants("a/2")
		p.complete("a/1", "a/2", "a/3")
		p.wants("a/4 a/5")
	})
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 2)
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		for range 3 {
			p.abandon("a/1")
			p.wants("a/1")
		}
		s.wantPeeked("tales", "a/1:3 a/2:0")
	})
}

func TestSESS_29_BlockedSessionIsPassedBy(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.change("tales", semantics.Options{SessionOnDeadLetter: semantics.BlockSession}, "sessionOnDeadLetter")
		s.sendMany("tales", "a/", 2)
		s.send("tales", "b/1")
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		p.settle(s.deadLettering, "a/1")
		p.wants("-a(yielded) +b b/1")
		p.complete("b/1")
		s.ok(s.UnblockSession(t.Context(), "tales", "a"))
		p.wants("-b(yielded) +a a/2")
	})
}

// A client that does not read keeps no session for ever.
func TestLOCK_9_SessionOfASlowClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", autoRenew(time.Minute))
		s.pass(time.Minute)
		s.wantCounts("tales", "available 1 locked 0 dead 0")
		other := s.subscribe("tales", nil)
		other.wants("")
		s.pass(testLock + time.Second)
		other.wants("+a a/1")
		p.wants("+a -a(lost)")
	})
}

// Two subscriptions share the sessions of a queue, and take over what the other gives up.
func TestSESS_16_SessionsAreShared(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p, q := s.subscribe("tales", sessions(2, 1)), s.subscribe("tales", sessions(2, 1))
		s.send("tales", "a/1", "b/1", "c/1", "d/1")
		got := strings.Fields(p.takes() + " " + q.takes())
		slices.Sort(got)
		if want := strings.Fields("+a +b +c +d a/1 b/1 c/1 d/1"); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		p.Close(t.Context())
		if again := strings.Fields(q.takes()); len(again) != 0 { // it has no place
			t.Errorf("got %v", again)
		}
		for id := range q.opened {
			q.complete(id + "/1")
		}
		if again := q.takes(); strings.Count(again, "yielded") != 2 {
			t.Errorf("got %q, want the other's two sessions", again)
		}
	})
}
