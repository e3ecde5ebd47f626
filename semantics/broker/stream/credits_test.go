package stream_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

func TestRECV_13_NeverMoreUnsettledThanCredits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 7)
		p := s.subscribe("orders", credits(3))
		p.wants("1 2 3")
		p.complete("2")
		p.wants("4")
		p.complete("1", "3", "4")
		p.wants("5 6 7")
		s.wantCounts("orders", "available 0 locked 3 dead 0")
		s.send("orders", "8")
		p.wants("")
		p.complete("5", "6", "7")
		p.wants("8")
	})
}

func TestRECV_13_EveryVerbGivesTheCreditBack(t *testing.T) {
	t.Parallel()
	for name, verb := range map[string]func(s *stand) semantics.Settlement{
		"complete":   func(s *stand) semantics.Settlement { return s.Complete },
		"abandon":    func(s *stand) semantics.Settlement { return s.abandonment },
		"deadLetter": func(s *stand) semantics.Settlement { return s.deadLettering },
		"defer":      func(s *stand) semantics.Settlement { return s.deferral },
		"release":    func(s *stand) semantics.Settlement { return s.Release },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.send("orders", "1")
				p := s.subscribe("orders", nil)
				p.wants("1")
				p.settle(verb(s), "1")
				again := map[string]string{"abandon": "1", "release": "1"}[name]
				p.wants(again)
				if again == "" {
					s.send("orders", "2")
					p.wants("2")
				}
			})
		})
	}
}

func TestRECV_13_WithoutCreditsItPauses(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 3)
		p := s.subscribe("orders", credits(0))
		p.wants("")
		s.pass(testLock)
		p.wants("")
		s.wantCounts("orders", "available 3 locked 0 dead 0")
		s.ok(p.SetCredits(2))
		p.wants("1 2")
		s.ok(p.SetCredits(0))
		p.complete("1", "2")
		p.wants("")
		s.ok(p.SetCredits(1))
		p.wants("3")
	})
}

func TestRECV_13_LoweredWhileAReceiveWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p := s.subscribe("orders", credits(5))
		p.wants("")
		s.ok(p.SetCredits(2))
		s.sendMany("orders", "", 5)
		p.wants("1 2")
		s.ok(p.SetCredits(0))
		p.complete("1", "2")
		s.wantCounts("orders", "available 3 locked 0 dead 0")
		p.wants("")
	})
}

func TestRECV_13_LoweredBelowWhatIsInHand(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 9)
		p := s.subscribe("orders", credits(5))
		p.wants("1 2 3 4 5")
		s.ok(p.SetCredits(2))
		p.complete("1", "2", "3")
		p.wants("")
		p.complete("4")
		p.wants("6")
	})
}

// The store hands out while the client takes its credits back: what it did not want goes back, uncounted.
func TestRECV_13_LoweredWhileTheStoreHandsOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 4)
		hold := s.store.stop("Receive")
		p := s.subscribe("orders", credits(4))
		synctest.Wait()
		s.wantCounts("orders", "available 0 locked 4 dead 0")
		s.ok(p.SetCredits(1))
		close(hold)
		p.wants("1")
		s.wantCounts("orders", "available 3 locked 1 dead 0")
		s.wantPeeked("orders", "1:0 2:0 3:0 4:0")
		p.complete("1")
		p.wants("2")
	})
}

func TestRECV_13_RaisedWhileAReceiveWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p := s.subscribe("orders", credits(1))
		p.wants("")
		s.ok(p.SetCredits(3))
		s.sendMany("orders", "", 4)
		p.wants("1 2 3")
	})
}

func TestRECV_13_BoundsOfCredits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p := s.subscribe("orders", nil)
		for _, n := range []int{-1, stream.MaxCredits + 1} {
			wantCode(t, "credits", p.SetCredits(n), semantics.ArgumentOutOfRange)
		}
		s.send("orders", "1")
		p.wants("1") // it goes on
	})
}

// A client that does not read is given no more than it has credits for, whatever there is.
func TestRECV_13_SlowClient(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]semantics.Mode{"peek lock": semantics.PeekLock, "receive and delete": semantics.ReceiveAndDelete} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.sendMany("orders", "", 20)
				p := s.subscribe("orders", func(o *stream.Options) { o.Credits, o.Mode = 4, mode })
				synctest.Wait()
				s.wantCounts("orders", "available 16 locked 4 dead 0")
				s.pass(3 * testLock) // and keeps what is waiting for it
				s.wantCounts("orders", "available 16 locked 4 dead 0")
				e, err := p.event()
				s.ok(err)
				synctest.Wait()
				s.wantCounts("orders", "available 16 locked 4 dead 0")
				p.delivered(e)
				synctest.Wait()
				if mode == semantics.ReceiveAndDelete {
					s.wantCounts("orders", "available 12 locked 4 dead 0")
				} else {
					s.wantCounts("orders", "available 16 locked 4 dead 0")
				}
			})
		})
	}
}

// Many sessions wait to hand on what they have; all together they have no more than there are credits.
func TestRECV_13_SlowClientOfSessions(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]semantics.Mode{"peek lock": semantics.PeekLock, "receive and delete": semantics.ReceiveAndDelete} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				for _, id := range []string{"a", "b", "c", "d"} {
					s.sendMany("tales", id+"/", 5)
				}
				p := s.subscribe("tales", func(o *stream.Options) {
					o.Credits, o.Mode, o.MaxSessions, o.SessionInFlight = 6, mode, 4, 3
				})
				for { // it reads, but does not say that anything has arrived
					if _, err := p.event(); err != nil {
						break
					}
				}
				synctest.Wait()
				s.wantCounts("tales", "available 14 locked 6 dead 0")
				s.pass(3 * testLock)
				s.wantCounts("tales", "available 14 locked 6 dead 0")
			})
		})
	}
}

func TestRECV_13_LargeDeliveriesComeInPieces(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		size := []int{100 << 10, 100 << 10, 100 << 10, 200 << 10, 10, 100 << 10}
		for _, n := range size {
			_, err := s.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{Body: make([]byte, n)}})
			s.ok(err)
		}
		p := s.subscribe("orders", credits(10))
		var pieces []int
		for {
			e, err := p.event()
			if err != nil {
				break
			}
			pieces = append(pieces, len(e.Delivery.Messages))
		}
		if want := []int{2, 1, 2, 1}; !slices.Equal(pieces, want) {
			t.Errorf("got pieces of %v messages, want %v", pieces, want)
		}
	})
}

func TestRECV_13_IDStandsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		named := func(o *stream.Options) { o.ID = "worker" }
		first := s.subscribe("orders", named)
		options := stream.DefaultOptions()
		options.ID = "worker"
		for _, queue := range []string{"orders", "tales"} {
			_, err := s.Subscribe(t.Context(), semantics.Source{Path: queue}, options)
			wantCode(t, "the second of a name", err, semantics.InvalidOperation)
		}
		s.send("orders", "1")
		first.wants("1") // the first is none the worse
		s.subscribe("orders", nil)
		s.subscribe("orders", nil) // without a name
		first.Drop(t.Context())
		s.subscribe("orders", named)
	})
}
