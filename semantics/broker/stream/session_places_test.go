package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics/broker/stream"
)

func TestSESS_23_MaxConcurrentSessions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1", "c/1", "d/1")
		p := s.subscribe("tales", sessions(2, 1))
		p.wants("+a a/1 +b b/1")
		if n := s.Held(); n != 4 { // two sessions, two messages
			t.Errorf("%d held", n)
		}
		p.complete("a/1") // now it has nothing to do, and others are ready
		p.wants("-a(yielded) +c c/1")
		p.complete("b/1")
		p.wants("-b(yielded) +d d/1")
	})
}

// Each session is sure of one credit, so there are no more sessions than credits.
func TestSESS_23_NoMoreSessionsThanCredits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1", "c/1")
		p := s.subscribe("tales", credits(2))
		p.wants("+a a/1 +b b/1")
		s.ok(p.SetCredits(3))
		p.wants("+c c/1")
		s.ok(p.SetCredits(0))
		p.complete("a/1", "b/1")
		if closed := p.takes(); strings.Count(closed, "(paused)") != 2 || len(p.opened) != 1 {
			t.Errorf("got %q, want a and b closed", closed)
		}
		s.send("tales", "c/2")
		p.complete("c/1")
		p.wants("-c(paused)") // and others may have it
		s.wantCounts("tales", "available 1 locked 0 dead 0")
		s.ok(p.SetCredits(1))
		p.wants("+c c/2")
	})
}

// Who wants fewer sessions than it has takes none in the place of one that it gives up.
func TestSESS_23_NoneIsTakenForOneTooMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first                   string // what comes of the first session
		inFlight, credits, left int
		complete                []string
	}{
		"paused":         {"+a a/1", 1, 2, 0, []string{"b/1"}},
		"one less":       {"+a a/1", 1, 2, 1, []string{"b/1"}},
		"none has space": {"+a a/1 a/2", 2, 3, 2, []string{"b/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				p := s.subscribe("tales", func(o *stream.Options) {
					o.MaxSessions, o.SessionInFlight, o.Credits = 2, c.inFlight, c.credits
				})
				s.send("tales", "a/1", "a/2")
				p.wants(c.first)
				s.send("tales", "b/1", "b/2")
				p.wants("+b b/1")
				s.send("tales", "c/1")
				s.pass(time.Second) // both have had their turn
				s.ok(p.SetCredits(c.left))
				p.complete(c.complete...)
				got := p.takes()
				if _, first, _ := strings.Cut(got, "("); !strings.HasPrefix(first, "paused)") {
					t.Errorf("got %q, want one of them paused first", got)
				}
				if n := s.store.count("CloseSession"); n != 1 {
					t.Errorf("%d sessions were given up", n)
				}
			})
		})
	}
}

// Also when there is a credit, because another session is about to make way.
func TestSESS_23_NoneIsTakenWhileThereAreTooMany(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "a/2", "b/1", "b/2", "c/1")
		p := s.subscribe("tales", sessions(3, 1))
		p.wants("+a a/1 +b b/1 +c c/1")
		s.pass(time.Second)
		asking := s.store.stopBefore("AcceptNextSession")
		p.complete("a/1")
		<-asking // whether it may make way
		s.send("tales", "d/1")
		s.ok(p.SetCredits(2))
		p.complete("b/1")
		p.wants("b/2")
		asking <- struct{}{}
		p.wants("-a(paused)")
	})
}

// The client never sees more sessions than it wants, however fast they change.
func TestSESS_23_NeverMoreThanMaxAtATime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		for i := range 60 {
			s.send("tales", fmt.Sprintf("s%d/1", i%20))
		}
		p := s.subscribe("tales", sessions(3, 1))
		served := 0
		for range 1000 {
			e, err := p.event()
			if err != nil {
				break
			}
			p.note(e)
			p.delivered(e)
			if len(p.opened) > 3 {
				t.Fatalf("%d sessions are open", len(p.opened))
			}
			if e.Delivery != nil {
				served += len(e.Delivery.Messages)
				p.complete(string(e.Delivery.Messages[0].Body))
			}
		}
		if served != 60 {
			t.Errorf("%d messages came, want 60", served)
		}
	})
}

// Also when one is given up for another reason than the next.
func TestSESS_23_ClosedBeforeTheNextIsOpened(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.MaxSessions = 2, 1 })
		p.wants("+a a/1")
		s.send("tales", "b/1")
		s.pass(time.Second)
		hold := s.store.stop("CloseSession")
		s.ok(p.CloseSession(p.opened["a"]))
		p.wants("") // although b was accepted
		close(hold)
		if got, want := p.takes(), "-a(closed) +b b/1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// While more messages are unsettled than the credits permit, no session is opened, even if places are free.
func TestSESS_23_NoSessionWithoutACredit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 4)
		p := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.MaxSessions, o.SessionInFlight = 5, 4, 4 })
		p.wants("+a a/1 a/2 a/3 a/4")
		s.ok(p.SetCredits(3))
		s.send("tales", "b/1")
		p.wants("")
		p.complete("a/1")
		p.wants("")
		p.complete("a/2")
		p.wants("+b b/1")
	})
}

// A session that was accepted for a place that is gone by then is free again.
func TestSESS_23_AcceptedForAPlaceThatIsGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		p.complete("a/1")
		synctest.Wait()
		hold := s.store.stop("AcceptNextSession")
		s.send("tales", "b/1") // for the place of a
		synctest.Wait()
		s.send("tales", "a/2")
		p.wants("a/2")
		close(hold)
		p.wants("")
		s.store.stop("")
		s.subscribe("tales", nil).wants("+b b/1")
	})
}

// Who has no place does not take a session just to give it back.
func TestSESS_23_NoRoomNoAccept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		p.complete("a/1")
		p.wants("") // and waits, so that others may have its place
		s.send("tales", "a/2")
		p.wants("a/2")
		s.send("tales", "b/1")
		p.wants("")
		if n := s.store.count("CloseSession"); n != 0 {
			t.Errorf("%d sessions were given up", n)
		}
	})
}
