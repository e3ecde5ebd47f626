package stream_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// unsettled subscribes to "orders" and "tales" with two unsettled messages of each, and one that waits for the client
// to read.
func (s *stand) unsettled(change func(o *stream.Options)) (orders, tales *client) {
	s.t.Helper()
	options := func(o *stream.Options) {
		o.Credits, o.MaxSessions, o.SessionInFlight = 3, 1, 3
		if change != nil {
			change(o)
		}
	}
	s.send("orders", "1", "2")
	s.send("tales", "a/1", "a/2")
	orders, tales = s.subscribe("orders", options), s.subscribe("tales", options)
	orders.wants("1 2")
	tales.wants("+a a/1 a/2")
	s.send("orders", "3")
	s.send("tales", "a/3")
	synctest.Wait()
	_, err := s.SetSessionState(s.t.Context(), tales.Source(tales.opened["a"]), []byte("note"), nil)
	s.ok(err)
	return orders, tales
}

func (s *stand) onDisconnect(v semantics.OnDisconnect) {
	s.t.Helper()
	for _, queue := range []string{"orders", "tales"} {
		s.change(queue, semantics.Options{OnDisconnect: v}, "onDisconnect")
	}
}

// stateOf takes a session and gives its state.
func (s *stand) stateOf(id string) string {
	s.t.Helper()
	a, err := s.AcceptSession(s.t.Context(), "tales", broker.AcceptOptions{SessionID: id})
	s.ok(err)
	defer func() { s.ok(a.Undelivered(s.t.Context())) }()
	return string(a.Session.State.Data)
}

func TestDC_2_OrderlyEndCountsNothing(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]semantics.OnDisconnect{"expire": semantics.ExpireOnDisconnect, "release": semantics.ReleaseOnDisconnect} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.onDisconnect(mode)
				orders, tales := s.unsettled(nil)
				orders.Close(t.Context())
				tales.Close(t.Context())
				s.wantCounts("orders", "available 3 locked 0 dead 0")
				s.wantCounts("tales", "available 3 locked 0 dead 0")
				s.pass(2 * testLock)
				s.wantPeeked("orders", "1:0 2:0 3:0")
				s.wantPeeked("tales", "a/1:0 a/2:0 a/3:0")
				if s.Held() != 0 || s.stateOf("a") != "note" {
					t.Errorf("%d held, state %q", s.Held(), s.stateOf("a"))
				}
				orders.wants("end:EOF")
				tales.wants("end:EOF")
			})
		})
	}
}

// A client that vanished has failed with what it had, once; what it never saw comes at once and is not counted
// (LOCK-10).
func TestDC_8_VanishedClientCountsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		orders, tales := s.unsettled(nil)
		orders.Drop(t.Context())
		tales.Drop(t.Context())
		s.wantCounts("orders", "available 1 locked 2 dead 0")
		s.wantPeeked("orders", "1:0 2:0 3:0")
		s.wantCounts("tales", "available 1 locked 2 dead 0")
		s.pass(testLock + time.Second)
		s.wantPeeked("orders", "1:1 2:1 3:0")
		s.wantPeeked("tales", "a/1:1 a/2:1 a/3:0")
		s.wantCounts("orders", "available 3 locked 0 dead 0")
		s.wantCounts("tales", "available 3 locked 0 dead 0")
		if state := s.stateOf("a"); state != "note" {
			t.Errorf("state %q", state)
		}
		s.pass(10 * testLock)
		s.wantPeeked("orders", "1:1 2:1 3:0")
		s.wantPeeked("tales", "a/1:1 a/2:1 a/3:0")
	})
}

func TestLOCK_10_ReleaseGivesBackAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		orders, tales := s.unsettled(nil)
		s.onDisconnect(semantics.ReleaseOnDisconnect) // what holds at the end counts
		orders.Drop(t.Context())
		tales.Drop(t.Context())
		s.wantCounts("orders", "available 3 locked 0 dead 0")
		s.wantCounts("tales", "available 3 locked 0 dead 0")
		s.pass(2 * testLock)
		s.wantPeeked("orders", "1:0 2:0 3:0")
		s.wantPeeked("tales", "a/1:0 a/2:0 a/3:0")
		if state := s.stateOf("a"); state != "note" {
			t.Errorf("state %q", state)
		}
	})
}

// Sessions of which the vanished client had nothing are free for others at once.
func TestLOCK_10_IdleSessionIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1")
		p := s.subscribe("tales", credits(2))
		p.takes()
		p.complete("a/1")
		p.Drop(t.Context())
		other := s.subscribe("tales", credits(2))
		s.send("tales", "a/2")
		other.wants("+a a/2")
		s.pass(testLock)
		other.wants("+b b/1")
	})
}

// When the store does not say what the queue wants, nothing is given back early.
func TestLOCK_10_DropDuringAnOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.onDisconnect(semantics.ReleaseOnDisconnect)
		orders, tales := s.unsettled(nil)
		s.store.only = "GetEntity"
		s.store.fail(errAway)
		orders.Drop(t.Context())
		tales.Drop(t.Context())
		s.store.fail(nil)
		s.wantCounts("orders", "available 1 locked 2 dead 0")
		s.pass(testLock + time.Second)
		s.wantPeeked("orders", "1:1 2:1 3:0")
		s.wantPeeked("tales", "a/1:1 a/2:1 a/3:0")
	})
}

// Whatever ends first counts: a client that has closed and then goes away has closed.
func TestLOCK_10_OnlyTheFirstEndCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		orders, tales := s.unsettled(nil)
		for _, p := range []*client{orders, tales} {
			p.Close(t.Context())
			p.Drop(t.Context())
			p.Detach(t.Context())
		}
		s.pass(2 * testLock)
		s.wantPeeked("orders", "1:0 2:0 3:0")
		s.wantPeeked("tales", "a/1:0 a/2:0 a/3:0")
	})
}

// An end that the client did not ask for leaves it what it has, to settle by calls (LOCK-8).
func TestLOCK_10_DetachLeavesWhatIsInHand(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.onDisconnect(semantics.ReleaseOnDisconnect)
		orders, tales := s.unsettled(nil)
		orders.Detach(t.Context())
		tales.Detach(t.Context())
		for source, token := range map[semantics.Source]semantics.LockToken{
			orders.Source(semantics.LockToken{}): orders.unsettled["2"],
			tales.Source(tales.opened["a"]):      tales.unsettled["a/2"],
		} {
			codes, err := s.Complete(t.Context(), source, []semantics.LockToken{token})
			s.ok(err)
			if codes[0] != "" {
				t.Errorf("%s: %s", source, codes[0])
			}
		}
		s.wantPeeked("orders", "1:0 3:0")
		s.pass(testLock + time.Second)
		s.wantPeeked("orders", "1:1 3:0")
		s.wantPeeked("tales", "a/1:1 a/3:0")
	})
}

// What is on its way in ReceiveAndDelete mode when the client closes is the client's when it arrives, and else comes
// again.
func TestRECV_3_EndWaitsForWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		for name, arrives := range map[string]bool{"arrives": true, "is lost": false} {
			t.Run(queue+" "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *stand) {
					s.send(queue, "a/1")
					p := s.subscribe(queue, func(o *stream.Options) { o.Mode = semantics.ReceiveAndDelete })
					e, err := p.event()
					if e.SessionOpened != nil {
						e, err = p.event()
					}
					s.ok(err)
					closed := make(chan struct{})
					go func() {
						defer close(closed)
						p.Close(t.Context())
					}()
					synctest.Wait()
					if s.counts(queue) != "available 0 locked 1 dead 0" {
						t.Error("it did not wait")
					}
					if arrives {
						p.delivered(e)
					} else {
						p.carried = nil
						p.Undelivered(t.Context(), e)
					}
					<-closed
					s.wantPeeked(queue, map[bool]string{true: "", false: "a/1:0"}[arrives])
				})
			})
		}
	}
}

// Of a delivery that comes in pieces, those that did not reach the client are back at once.
func TestRECV_7_EndAmongPieces(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		for range 5 {
			_, err := s.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{Body: make([]byte, 200<<10)}})
			s.ok(err)
		}
		p := s.subscribe("orders", credits(5))
		e, err := p.event()
		s.ok(err)
		p.delivered(e)
		p.Detach(t.Context())
		s.wantCounts("orders", "available 4 locked 1 dead 0")
	})
}

// lastPause is the longest pause after failures.
const lastPause = 5 * time.Second
