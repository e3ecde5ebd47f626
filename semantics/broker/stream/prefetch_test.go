package stream_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// fetching subscribes with so many credits and so many messages fetched ahead.
func fetching(credits, ahead int) func(o *stream.Options) {
	return func(o *stream.Options) { o.Credits, o.Prefetch = credits, ahead }
}

func TestRECV_12_FetchesAheadInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 9)
		p := s.subscribe("orders", fetching(2, 3))
		p.wants("1 2")
		s.wantCounts("orders", "available 4 locked 5 dead 0")
		p.complete("2")
		p.wants("3")
		p.complete("1", "3")
		p.wants("4 5")
		s.wantCounts("orders", "available 1 locked 5 dead 0")
		p.complete("4", "5")
		p.wants("6 7")
		p.complete("6", "7")
		p.wants("8 9")
		p.complete("8", "9")
		s.wantCounts("orders", "available 0 locked 0 dead 0")
	})
}

// What is in the buffer is at hand when the store is not.
func TestRECV_12_TheBufferComesFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 4)
		p := s.subscribe("orders", fetching(1, 3))
		p.wants("1")
		p.abandon("1") // re-enters behind the buffer
		p.wants("2")
		p.complete("2")
		p.wants("3")
		p.complete("3")
		p.wants("4")
		p.complete("4")
		p.wants("1")
		s.wantPeeked("orders", "1:1")
	})
}

func TestRECV_12_OffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 5)
		p := s.subscribe("orders", credits(2))
		p.wants("1 2")
		s.wantCounts("orders", "available 3 locked 2 dead 0")
	})
}

func TestRECV_12_NotForSessions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		for queue, c := range map[string]struct {
			prefetch int
			want     semantics.Code
		}{
			"tales":  {1, semantics.InvalidOperation},
			"orders": {stream.MaxPrefetch + 1, semantics.ArgumentOutOfRange},
		} {
			options := stream.DefaultOptions()
			options.Prefetch = c.prefetch
			_, err := s.Subscribe(t.Context(), semantics.Source{Path: queue}, options)
			wantCode(t, queue, err, c.want)
		}
	})
}

// The lock runs from the fetch. What has waited for too long is not handed out any more, and has failed.
func TestRECV_12_ExpiresInTheBuffer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 3)
		p := s.subscribe("orders", fetching(1, 2))
		p.wants("1")
		s.pass(testLock + time.Second)
		s.wantPeeked("orders", "1:0 2:1 3:1") // the unsettled one is kept
		s.wantCounts("orders", "available 2 locked 1 dead 0")
		p.complete("1")
		p.wants("2")
		p.complete("2")
		p.wants("3")
		if n := s.PrefetchesCut(); n != 1 {
			t.Errorf("cut %d times", n)
		}
	})
}

// What comes late from the buffer is renewed in time, or not handed out at all.
func TestRECV_12_LateFromTheBuffer(t *testing.T) {
	t.Parallel()
	for _, waits := range []time.Duration{testLock / 2, testLock - 3*time.Second, testLock - time.Second} {
		t.Run(waits.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.sendMany("orders", "", 2)
				p := s.subscribe("orders", fetching(1, 1))
				p.wants("1")
				s.pass(waits)
				p.complete("1")
				if got := p.takes(); got == "" {
					s.pass(2 * time.Second)
					p.wants("2")
				} else if got != "2" {
					t.Fatalf("got %q", got)
				}
				s.pass(3 * testLock)
				p.wants("")
				p.complete("2")
			})
		})
	}
}

func TestRECV_12_GivenBackUncounted(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *stand, p *client){
		"close":  func(s *stand, p *client) { p.Close(s.t.Context()) },
		"drop":   func(s *stand, p *client) { p.Drop(s.t.Context()) },
		"detach": func(s *stand, p *client) { p.Detach(s.t.Context()) },
		"drain":  func(s *stand, _ *client) { s.BeginDrain() },
		"pause":  func(s *stand, p *client) { s.ok(p.SetCredits(0)) },
	} {
		for mode, option := range map[string]semantics.Mode{"peek lock": semantics.PeekLock, "receive and delete": semantics.ReceiveAndDelete} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *stand) {
					s.sendMany("orders", "", 5)
					p := s.subscribe("orders", func(o *stream.Options) { o.Credits, o.Prefetch, o.Mode = 1, 3, option })
					e, err := p.event()
					s.ok(err)
					p.note(e)
					s.wantCounts("orders", "available 1 locked 4 dead 0")
					if option == semantics.ReceiveAndDelete && name != "pause" && name != "drain" {
						p.delivered(e) // else it would wait for that
					}
					end(s, p)
					synctest.Wait()
					want := "available 4"
					if name == "close" && option == semantics.PeekLock {
						want = "available 5" // unsettled messages too
					}
					if counts := s.counts("orders"); !strings.HasPrefix(counts, want) {
						t.Errorf("%s, want %s", counts, want)
					}
					if got := s.peeked("orders"); !strings.HasSuffix(got, "2:0 3:0 4:0 5:0") {
						t.Errorf("got %s", got)
					}
				})
			})
		}
	}
}

func TestRECV_12_LoweredCreditsShrinkIt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 12)
		p := s.subscribe("orders", fetching(4, 3))
		p.wants("1 2 3 4")
		s.wantCounts("orders", "available 5 locked 7 dead 0")
		s.ok(p.SetCredits(2)) // it has more unsettled messages than both together
		synctest.Wait()
		s.wantCounts("orders", "available 7 locked 5 dead 0")
		p.complete("1", "2", "3")
		p.wants("5")
		s.wantCounts("orders", "available 4 locked 5 dead 0")
		s.wantPeeked("orders", "4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0 12:0")
	})
}

// For a client that is too slow, nothing or less is fetched ahead, so that locks do not end in the buffer.
func TestRECV_12_SlowClientGetsLess(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 200)
		p := s.subscribe("orders", fetching(1, 20))
		p.wants("1")
		s.wantCounts("orders", "available 179 locked 21 dead 0")
		work := func(times int, each time.Duration) {
			for range times {
				s.pass(each)
				for text := range p.unsettled {
					p.complete(text)
					delete(p.unsettled, text)
				}
				p.takes()
			}
		}
		work(10, 100*time.Millisecond)
		if n := s.PrefetchesCut(); n != 0 {
			t.Errorf("cut %d times for a fast client", n)
		}
		work(30, 5*time.Second) // 20 would take 100 s, a lock lasts 30 s
		locked := func() int64 {
			r, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
			s.ok(err)
			return r.Locked
		}
		if n := locked(); n > 1+6 || s.PrefetchesCut() != 1 {
			t.Errorf("%d locked for a slow client, cut %d times", n, s.PrefetchesCut())
		}
		work(60, 10*time.Millisecond)
		if n := locked(); n != 21 {
			t.Errorf("%d locked for a client that is fast again", n)
		}
	})
}
