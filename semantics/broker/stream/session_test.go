package stream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
				s.pass(time.Minute) // a message in hand is no idleness
				p.wants("")
				p.complete("a/1")
				if idle > 0 {
					s.pass(idle - time.Second)
					p.wants("")
					s.send("tales", "a/2") // and each message begins it anew
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

// While one of several messages is in hand the session is not idle, and nobody polls for the others.
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

// While more is in hand than the credits permit no session is begun, though there were places.
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

func TestSESS_22_LostSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1")
		p := s.subscribe("tales", credits(4))
		p.takes()
		p.complete("b/1")
		for _, id := range []string{"a", "b"} { // somebody else ends their locks, as an operator may
			s.ok(s.store.Store.CloseSession(t.Context(), p.Source(p.opened[id])))
		}
		p.wants("-b(lost) -a(lost) +a a/1") // b waits, so it sees it at once; a comes again
		p.complete("a/1")
	})
}

// While somebody else has the session, the next renewal finds out.
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

// A settlement that finds the session lost tells the subscription.
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

// A message that the store hands out just when the session makes way is not shown to the client, and not counted.
func TestSESS_23_MakesWayWhileTheStoreHandsOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		p.complete("a/1")
		synctest.Wait()
		hold := s.store.stop("Receive")
		s.send("tales", "a/2")
		synctest.Wait()
		s.wantCounts("tales", "available 0 locked 1 dead 0")
		s.send("tales", "b/1")
		synctest.Wait()
		s.store.stop("")
		close(hold)
		p.wants("-a(yielded) +b b/1")
		s.wantPeeked("tales", "a/2:0 b/1:0")
		p.complete("b/1")
		p.wants("-b(yielded) +a a/2")
	})
}

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

// Credits beyond one for each session go to whoever has use for them.
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
