package stream_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

func TestSESS_23_LoweredCreditsGiveUpIdleSessions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1", "c/1", "d/1")
		p := s.subscribe("tales", credits(4))
		p.takes()
		p.complete("b/1", "c/1", "d/1")
		p.wants("")
		s.ok(p.SetCredits(2))
		closed := p.takes()
		if strings.Count(closed, "(paused)") != 2 || strings.Contains(closed, "-a") {
			t.Errorf("got %q, want two of the idle ones closed", closed)
		}
		p.complete("a/1")
		p.wants("")
	})
}

func TestSESS_23_GivenUpAfterIdleTime(t *testing.T) {
	t.Parallel()
	for _, idle := range []time.Duration{0, 10 * time.Second, time.Minute, 20 * time.Minute} {
		t.Run(idle.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.send("tales", "a/1")
				p := s.subscribe("tales", func(o *stream.Options) { o.SessionIdle = idle })
				p.wants("+a a/1")
				s.pass(time.Minute) // a session with an unsettled message is not idle
				p.wants("")
				p.complete("a/1")
				if idle > 0 {
					s.pass(idle - time.Second)
					p.wants("")
					s.send("tales", "a/2") // and each message restarts the time
					p.wants("a/2")
					p.complete("a/2")
					s.pass(idle - time.Second)
					p.wants("")
					s.pass(time.Second)
				}
				p.wants("-a(idle)")
				if s.Held() != 0 {
					t.Errorf("%d held", s.Held())
				}
				s.send("tales", "a/3") // it is picked up when it has something again
				p.wants("+a a/3")
			})
		})
	}
}

// While one of several messages is unsettled the session is not idle, and the sidecar does not poll for the others.
func TestSESS_23_InFlightIsNotIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.SessionInFlight, o.SessionIdle = 4, 4, 0 })
		p.wants("+a a/1")
		before := s.store.count("Receive")
		s.pass(time.Minute)
		p.wants("")
		if n := s.store.count("Receive") - before; n > 10 {
			t.Errorf("it asked %d times in a minute", n)
		}
		s.send("tales", "a/2")
		p.wants("a/2")
		p.complete("a/1", "a/2")
		p.wants("-a(idle)")
	})
}

// A session without messages makes way within no time when another is ready (I17), the one idle longest first.
func TestSESS_23_IdleMakesWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1")
		p := s.subscribe("tales", sessions(2, 1))
		p.takes()
		p.complete("b/1")
		s.pass(time.Second)
		p.complete("a/1")
		s.pass(time.Second)
		p.wants("")
		s.send("tales", "c/1")
		p.wants("-b(yielded) +c c/1")
		s.send("tales", "d/1")
		p.wants("-a(yielded) +d d/1")
		s.send("tales", "e/1")
		p.wants("") // all are busy
		p.complete("c/1")
		p.wants("-c(yielded) +e e/1")
	})
}

// A session for which the store hands out a message is not idle, so it keeps its place.
func TestSESS_23_KeepsItsPlaceWhileTheStoreHandsOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		hold, p := s.handingOut()
		s.send("tales", "b/1")
		synctest.Wait()
		close(hold)
		p.wants("a/2")
		p.complete("a/2")
		p.wants("-a(yielded) +b b/1")
	})
}

// A message that the store hands out just when the session is given up is not shown to the client, and not counted.
func TestSESS_21_ClosedWhileTheStoreHandsOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		hold, p := s.handingOut()
		s.ok(p.CloseSession(p.opened["a"]))
		s.send("tales", "b/1")
		s.pass(time.Second) // so that it has been ready for longer
		close(hold)
		p.wants("-a(closed) +b b/1")
		s.wantPeeked("tales", "a/2:0 b/1:0")
		p.complete("b/1")
		p.wants("-b(yielded) +a a/2")
	})
}

// handingOut returns a client for whose session "a" the store hands out "a/2" until hold is closed.
func (s *stand) handingOut() (hold chan struct{}, p *client) {
	s.t.Helper()
	s.send("tales", "a/1")
	p = s.subscribe("tales", sessions(1, 1))
	p.wants("+a a/1")
	p.complete("a/1")
	synctest.Wait()
	hold = s.store.stop("Receive")
	s.send("tales", "a/2")
	synctest.Wait()
	s.wantCounts("tales", "available 0 locked 1 dead 0")
	s.store.stop("")
	return hold, p
}

// While messages go back that the client has no credits for any more, none behind them is taken.
func TestSESS_25_NothingOvertakesWhatGoesBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", sessions(1, 3))
		p.wants("+a a/1")
		p.complete("a/1")
		synctest.Wait()
		hold := s.store.stop("Receive")
		_, err := s.Send(t.Context(), semantics.ToQueue("tales"), []*semantics.Message{
			{SessionID: "a", Body: []byte("a/2")}, {SessionID: "a", Body: []byte("a/3")},
		})
		s.ok(err)
		synctest.Wait()
		s.store.stop("")
		s.send("tales", "a/4")
		s.ok(p.SetCredits(1))
		back := s.store.stopBefore("Release")
		close(hold)
		<-back
		s.ok(p.SetCredits(9))
		s.pass(time.Second) // longer than other sessions wait for this look
		p.wants("a/2")
		back <- struct{}{}
		p.wants("a/3 a/4")
	})
}
