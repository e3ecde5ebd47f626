package stream_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// autoRenew subscribes with a bound of renewals, for two messages, and for two of a session.
func autoRenew(d time.Duration) func(o *stream.Options) {
	return func(o *stream.Options) {
		o.MaxAutoRenew, o.Credits, o.MaxSessions, o.SessionInFlight = d, 2, 1, 2
	}
}

func TestLOCK_9_RenewedWhileTheStreamLives(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		s.send("tales", "a/1")
		p, q := s.subscribe("orders", autoRenew(time.Hour)), s.subscribe("tales", autoRenew(time.Hour))
		p.wants("1")
		q.wants("+a a/1")
		s.pass(59 * time.Minute)
		p.wants("")
		q.wants("")
		p.complete("1")
		q.complete("a/1")
	})
}

func TestLOCK_9_StopsAtMaxAutoRenew(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		s.send("tales", "a/1", "a/2")
		p, q := s.subscribe("orders", autoRenew(2*time.Minute)), s.subscribe("tales", autoRenew(2*time.Minute))
		p.wants("1")
		q.wants("+a a/1 a/2")
		s.pass(2 * time.Minute)
		p.wants("") // the last renewal still holds
		q.wants("")
		q.complete("a/2")
		s.pass(testLock + time.Second)
		p.wants("lost:1 1")
		q.wants("-a(lost) +a a/1")
		s.wantPeeked("orders", "1:1")
		s.wantPeeked("tales", "a/1:1")
	})
}

func TestLOCK_9_ZeroNeverRenews(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		s.send("tales", "a/1")
		p, q := s.subscribe("orders", autoRenew(0)), s.subscribe("tales", autoRenew(0))
		p.wants("1")
		q.wants("+a a/1")
		s.pass(testLock - time.Second)
		p.wants("")
		q.wants("")
		s.pass(2 * time.Second)
		p.wants("lost:1 1")
		q.wants("-a(lost) +a a/1")
		if n := s.store.count("RenewLocks"); n > 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A session of which the client has nothing is Sidebus' own to keep.
func TestLOCK_9_SessionWithoutMessagesIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", func(o *stream.Options) { o.MaxAutoRenew, o.SessionIdle = 0, time.Hour })
		p.wants("+a a/1")
		p.complete("a/1")
		s.pass(59 * time.Minute)
		p.wants("")
		s.send("tales", "a/2")
		p.wants("a/2")
	})
}

// Every message has its own time: one that is old does not take others with it, and a settled one does not count.
func TestLOCK_9_EachMessageHasItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", autoRenew(time.Minute))
		p.wants("1")
		s.pass(50 * time.Second)
		s.send("orders", "2")
		p.wants("2")
		s.pass(50 * time.Second)
		p.wants("lost:1 1")
		s.pass(5 * time.Second)
		p.complete("2")
	})
}

// The client may renew locks itself when the sidecar stops renewing them.
func TestLOCK_9_ClientRenewsBeyond(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		s.send("tales", "a/1")
		p, q := s.subscribe("orders", autoRenew(0)), s.subscribe("tales", autoRenew(0))
		p.wants("1")
		q.wants("+a a/1")
		for range 20 {
			s.pass(20 * time.Second)
			_, err := s.RenewLocks(t.Context(), p.Source(semantics.LockToken{}), []semantics.LockToken{p.unsettled["1"]})
			s.ok(err)
			_, err = s.RenewSessionLock(t.Context(), q.Source(q.opened["a"]))
			s.ok(err)
		}
		p.wants("")
		q.wants("")
		p.complete("1")
		q.complete("a/1")
	})
}

func TestLOCK_9_LockDurationIsShortened(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				long, short := semantics.Options{LockDuration: 5 * time.Minute}, semantics.Options{LockDuration: 5 * time.Second}
				s.change(queue, long, "lockDuration")
				s.send(queue, "a/1", "b/1")
				p := s.subscribe(queue, credits(3))
				p.takes()
				s.pass(time.Minute)
				s.change(queue, short, "lockDuration")
				s.send(queue, "c/1")
				if got := p.takes(); got != "c/1" && got != "+c c/1" {
					t.Fatalf("got %q", got)
				}
				s.pass(3 * time.Minute)
				p.wants("")
				p.complete("a/1", "b/1", "c/1")
			})
		})
	}
}

// What was delivered under a lock that is longer than the subscription knew is not called lost before its time.
func TestLOCK_9_LockDurationIsLengthened(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.change(queue, semantics.Options{LockDuration: 5 * time.Second}, "lockDuration")
				p := s.subscribe(queue, func(o *stream.Options) { o.Credits, o.MaxAutoRenew = 2, 0 })
				s.send(queue, "a/0")
				p.takes()
				s.change(queue, semantics.Options{LockDuration: time.Minute}, "lockDuration")
				s.send(queue, "b/1")
				p.takes()
				p.complete("a/0")
				s.pass(55 * time.Second)
				p.wants("")
				p.complete("b/1")
				if n := s.store.count("RenewLocks") + s.store.count("RenewSessionLock"); n != 0 && queue == "orders" {
					t.Errorf("asked %d times for renewals", n)
				}
			})
		})
	}
}

// An outage that is shorter than a lock costs none.
func TestLOCK_9_RenewalIsTriedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		s.send("tales", "a/1")
		p, q := s.subscribe("orders", nil), s.subscribe("tales", nil)
		p.wants("1")
		q.wants("+a a/1")
		s.pass(testLock/3 - time.Second)
		s.store.fail(errOutage)
		s.pass(testLock/2 + 2*time.Second)
		s.store.fail(nil)
		s.pass(testLock)
		p.wants("")
		q.takes() // the one failure it met while it looked for more sessions
		p.complete("1")
		q.complete("a/1")
	})
}

var errOutage = &semantics.Error{Code: semantics.StoreUnavailable, Message: "away", RetryAfter: 100 * time.Millisecond}

// A client that does not read does not block the renewals of others, and gets only messages that it can still settle.
func TestLOCK_9_SlowClientLosesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1", "2")
		p := s.subscribe("orders", func(o *stream.Options) { o.MaxAutoRenew, o.Credits = time.Minute, 2 })
		p.wants("1 2")
		p.complete("2")
		s.send("orders", "3")
		synctest.Wait() // 3 waits for the client to read
		s.wantCounts("orders", "available 0 locked 2 dead 0")
		s.pass(40 * time.Second)
		s.wantPeeked("orders", "1:0 3:0")
		s.pass(time.Minute) // both are lost, of which the client has one
		s.send("orders", "4")
		p.wants("lost:1 1 3")
		s.wantPeeked("orders", "1:1 3:1 4:0")
		p.complete("1", "3")
		p.wants("4")
	})
}

// Where the client's part of the time begins: when the message reached it.
func TestLOCK_9_TimeBeginsWithTheDelivery(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", autoRenew(time.Minute))
		s.pass(50 * time.Second)
		p.wants("1")
		s.pass(55 * time.Second)
		p.wants("")
		p.complete("1")
	})
}

func TestLOCK_9_SessionsInReceiveAndDeleteModeAreKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", func(o *stream.Options) { o.Mode, o.SessionIdle = semantics.ReceiveAndDelete, time.Hour })
		p.wants("+a a/1")
		s.pass(10 * testLock)
		s.send("tales", "a/2")
		p.wants("a/2")
		s.wantCounts("tales", "available 0 locked 0 dead 0")
	})
}

// A pod's clock decides nothing.
func TestLOCK_9_ClocksDiffer(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.store.Store = memstore.New(memstore.WithClock(func() time.Time { return time.Now().Add(skew) }))
				s.create("orders", semantics.Options{})
				s.create("tales", semantics.Options{RequiresSession: true}, "requiresSession")
				s.send("orders", "1")
				s.send("tales", "a/1")
				p, q := s.subscribe("orders", autoRenew(time.Minute)), s.subscribe("tales", autoRenew(time.Minute))
				p.wants("1")
				q.wants("+a a/1")
				s.pass(time.Minute)
				p.wants("")
				q.wants("")
				s.pass(testLock + time.Second)
				p.wants("lost:1 1")
				q.wants("-a(lost) +a a/1")
				p.complete("1")
				q.complete("a/1")
			})
		})
	}
}

// Who gathers several events is not given a message again before it is told that its lock was lost.
func TestLOCK_6_LossIsToldBeforeTheNextDelivery(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", autoRenew(0))
		p.wants("1")
		s.pass(testLock + time.Second)
		synctest.Wait()
		if e, isReady := p.Ready(t.Context()); isReady {
			t.Errorf("got %q", p.note(e))
		}
		p.wants("lost:1 1")
	})
}
