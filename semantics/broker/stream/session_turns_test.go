package stream_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// run plays a client that settles each message after a time of work, which differs, and gives the instant, from now on,
// of each.
func (p *client) run(work, most time.Duration) map[string]time.Duration {
	p.t.Helper()
	began, done := time.Now(), map[string]time.Duration{}
	for time.Since(began) < most {
		e, err := p.event()
		if semantics.CodeOf(err) == semantics.Cancelled {
			p.stand.pass(10 * time.Millisecond)
			continue
		}
		p.stand.ok(err)
		p.note(e)
		p.delivered(e)
		if e.Delivery == nil {
			continue
		}
		for _, m := range e.Delivery.Messages {
			text := string(m.Body)
			done[text] = time.Since(began)
			time.AfterFunc(work+time.Duration(len(done)%5)*work/4, func() { p.complete(text) })
		}
	}
	return done
}

// A session that always has messages does not keep the others waiting (I18).
func TestSESS_24_HotSessionStarvesNobody(t *testing.T) {
	t.Parallel()
	for name, inFlight := range map[string]int{"one in flight": 1, "several in flight": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				const cold = 10
				s.sendMany("tales", "hot/", 200)
				s.pass(time.Second) // so that it has been ready for longest
				for i := range cold {
					s.send("tales", fmt.Sprintf("cold%d/1", i))
				}
				p := s.subscribe("tales", sessions(1, inFlight))
				done := p.run(100*time.Millisecond, 4*time.Second)
				for i := range cold {
					at, ok := done[fmt.Sprintf("cold%d/1", i)]
					if !ok || at > 3*time.Second {
						t.Errorf("cold session %d: %s", i, at)
					}
				}
				if len(done) < cold+15 {
					t.Errorf("%d messages in all: the hot session does not get on", len(done))
				}
			})
		})
	}
}

// More sessions than places, and all of them always have messages: each gets on, about as far as the others.
func TestSESS_24_AllHotWithFewPlaces(t *testing.T) {
	t.Parallel()
	for name, inFlight := range map[string]int{"one in flight": 1, "several in flight": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				const ids = 6
				for i := range 60 * ids {
					s.send("tales", fmt.Sprintf("s%d/%d", i%ids, i/ids))
				}
				p := s.subscribe("tales", sessions(2, inFlight))
				done := p.run(100*time.Millisecond, 8*time.Second)
				counts := make([]int, ids)
				for text := range done {
					counts[text[1]-'0']++
				}
				if least, most := slices.Min(counts), slices.Max(counts); least == 0 || most > 3*least {
					t.Errorf("got %v messages of the sessions", counts)
				}
			})
		})
	}
}

// A message that takes long in a session with several in flight holds that session up for a turn at most, though others
// might be ready.
func TestSESS_24_LongMessageDoesNotStopItsSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 100)
		p := s.subscribe("tales", sessions(1, 2))
		p.wants("+a a/1 a/2")
		last := "a/2" // a/1 is never settled
		for i := range 98 {
			p.complete(last)
			last = fmt.Sprintf("a/%d", i+3)
			s.pass(50 * time.Millisecond)
			for range 20 {
				if got := p.takes(); got == last {
					break
				} else if got != "" {
					t.Fatalf("got %q", got)
				}
				s.pass(50 * time.Millisecond)
			}
			if _, ok := p.unsettled[last]; !ok {
				t.Fatalf("%s did not come", last)
			}
		}
	})
}

// A session with several in flight leaves a credit for one to come, as long as there may be more sessions.
func TestSESS_24_CreditIsKeptForASessionToCome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 9)
		p := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.MaxSessions, o.SessionInFlight = 4, 2, 9 })
		p.wants("+a a/1 a/2 a/3")
		s.send("tales", "b/1")
		p.wants("+b b/1")
	})
}

// Credits beyond one for each session go to the sessions that can use them.
func TestSESS_27_SpareCreditsMove(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 4)
		p := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.MaxSessions, o.SessionInFlight = 5, 2, 4 })
		p.wants("+a a/1 a/2 a/3 a/4")
		s.send("tales", "b/1")
		p.wants("+b b/1") // for which one was kept
		s.sendMany("tales", "b/more", 4)
		p.wants("") // no credit is free
		p.complete("a/1", "a/2", "a/3", "a/4")
		p.wants("b/more1 b/more2 b/more3") // a uses one to look for more
		s.send("tales", "a/5")
		p.wants("a/5")
	})
}
