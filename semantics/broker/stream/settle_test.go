package stream_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// One request may settle messages of several sessions, and names what it cannot settle in its place.
func TestSETTLE_14_TokensOfSeveralSessions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "a/2", "b/1", "c/1")
		p := s.subscribe("tales", sessions(4, 2))
		p.takes()
		gone := p.unsettled["c/1"]
		s.ok(p.CloseSession(p.opened["c"]))
		p.takes()
		tokens := []semantics.LockToken{
			p.unsettled["a/1"], semantics.NewLockToken(), p.unsettled["b/1"], gone, p.unsettled["a/2"], p.unsettled["a/1"],
		}
		codes, err := p.Complete(t.Context(), tokens)
		s.ok(err)
		for i, want := range []semantics.Code{"", semantics.MessageLockLost, "", semantics.SessionLockLost, "", semantics.MessageLockLost} {
			if codes[i] != want {
				t.Errorf("token %d: got %q, want %q", i, codes[i], want)
			}
		}
		s.wantPeeked("tales", "c/1:0")
	})
}

// A token that only another session's holder has settles nothing, even when it is alone with one of our own.
func TestSETTLE_2_TokenOfAnotherHolder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p, q := s.subscribe("tales", nil), s.subscribe("tales", nil)
		s.send("tales", "a/1", "b/1")
		p.takes()
		q.takes()
		for text, token := range q.unsettled {
			p.unsettled[text] = token
		}
		for text := range q.unsettled {
			if codes := p.settle(s.Complete, text); codes != string(semantics.MessageLockLost) {
				t.Errorf("got %q", codes)
			}
		}
		codes := p.settle(s.Complete, "a/1", "b/1")
		if codes != string(semantics.MessageLockLost) {
			t.Errorf("got %q", codes)
		}
		s.wantCounts("tales", "available 0 locked 1 dead 0")
	})
}

func TestSETTLE_14_RefusedCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		for _, queue := range []string{"orders", "tales"} {
			s.send(queue, "a/1")
			p := s.subscribe(queue, nil)
			p.takes()
			_, err := p.Complete(t.Context(), nil)
			wantCode(t, "no tokens", err, semantics.InvalidArgument)
			_, err = p.Complete(t.Context(), make([]semantics.LockToken, semantics.MaxSettleTokens+1))
			wantCode(t, "too many tokens", err, semantics.ArgumentOutOfRange)
			p.complete("a/1")
		}
	})
}

func TestRECV_3_NothingToSettle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", func(o *stream.Options) { o.Mode = semantics.ReceiveAndDelete })
		p.wants("1")
		_, err := p.Complete(t.Context(), []semantics.LockToken{semantics.NewLockToken()})
		wantCode(t, "settle", err, semantics.InvalidOperation)
		s.wantCounts("orders", "available 0 locked 0 dead 0")
	})
}

// A removal that fails costs no credit, and the message comes again when its lock ends.
func TestRECV_7_RemovalFails(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("orders", "1")
		p := s.subscribe("orders", func(o *stream.Options) { o.Mode = semantics.ReceiveAndDelete })
		e, err := p.event()
		s.ok(err)
		s.store.fail(errAway)
		p.delivered(e)
		p.wants("failure:STORE_UNAVAILABLE") // the credit is free, so it asks for more
		s.store.fail(nil)
		s.send("orders", "2")
		s.pass(lastPause)
		p.wants("2")
		s.pass(testLock)
		p.wants("1")
	})
}

func TestRECV_7_UndeliveredComesAgainUncounted(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		for name, mode := range map[string]semantics.Mode{"peek lock": semantics.PeekLock, "receive and delete": semantics.ReceiveAndDelete} {
			t.Run(queue+" "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *stand) {
					s.send(queue, "a/1")
					p := s.subscribe(queue, func(o *stream.Options) { o.Mode = mode })
					e, err := p.event()
					for ; err == nil && e.Delivery == nil; e, err = p.event() {
						p.note(e)
					}
					s.ok(err)
					p.carried = nil
					p.Undelivered(t.Context(), e)
					p.wants("a/1")
					if mode == semantics.PeekLock {
						s.wantPeeked(queue, "a/1:0")
					}
				})
			})
		}
	}
}

// A message that was unsettled when its session was lost gets SESSION_LOCK_LOST from then on; a foreign or settled one
// does not.
func TestSETTLE_2_TokenOfASessionThatIsGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 3)
		p := s.subscribe("tales", sessions(1, 3))
		p.wants("+a a/1 a/2 a/3")
		p.complete("a/1")
		settled, lost, also := p.unsettled["a/1"], p.unsettled["a/2"], p.unsettled["a/3"]
		s.ok(s.store.Store.CloseSession(t.Context(), p.Source(p.opened["a"])))
		for range 2 { // the first finds out
			codes, err := p.Complete(t.Context(), []semantics.LockToken{lost, also})
			s.ok(err)
			if codes[0] != semantics.SessionLockLost || codes[1] != semantics.SessionLockLost {
				t.Errorf("got %q", codes)
			}
		}
		p.wants("-a(lost) +a a/2 a/3")
		codes, err := p.Complete(t.Context(), []semantics.LockToken{p.unsettled["a/2"], also, settled, semantics.NewLockToken()})
		s.ok(err)
		if want := []semantics.Code{"", semantics.SessionLockLost, semantics.MessageLockLost, semantics.MessageLockLost}; !slices.Equal(codes, want) {
			t.Errorf("got %q, want %q", codes, want)
		}
	})
}

// A settlement whose answer was lost is repeated until it is known: else its session would wait for as long as its lock
// is renewed.
func TestERR_6_UnknownSettlementIsRepeated(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(s *stand, err error){
		"it took effect": func(s *stand, err error) { s.store.loseAnswers(err) }, "it did not": func(s *stand, err error) { s.store.fail(err) },
	} {
		for _, queue := range []string{"orders", "tales"} {
			t.Run(name+" "+queue, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *stand) {
					s.send(queue, "a/1", "a/2")
					p := s.subscribe(queue, nil)
					p.takes()
					s.store.only = "Complete"
					breaks(s, errAway.With(semantics.DetailOutcome, semantics.OutcomeUnknown))
					_, err := p.Complete(t.Context(), []semantics.LockToken{p.unsettled["a/1"]})
					wantCode(t, "settle", err, semantics.StoreUnavailable)
					s.pass(5 * time.Second)
					p.wants("")
					breaks(s, nil)
					s.pass(time.Second)
					p.wants("a/2")
					if n := s.store.count("Complete"); n < 3 {
						t.Errorf("it was tried %d times", n)
					}
					s.pass(5 * time.Second)
					if n := s.store.count("Complete"); n > 8 {
						t.Errorf("it was tried %d times", n)
					}
				})
			})
		}
	}
}

// A failure that is known to have changed nothing is the client's to deal with.
func TestERR_6_KnownFailureIsNotRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1")
		p := s.subscribe("tales", nil)
		p.wants("+a a/1")
		s.store.only = "Complete"
		s.store.fail(errAway)
		_, err := p.Complete(t.Context(), []semantics.LockToken{p.unsettled["a/1"]})
		wantCode(t, "settle", err, semantics.StoreUnavailable)
		s.store.fail(nil)
		s.pass(time.Minute)
		s.wantCounts("tales", "available 0 locked 1 dead 0")
		p.abandon("a/1")
		p.wants("a/1")
	})
}

// When the store fails for some sessions and not for others, the outcome of the whole is unknown (ERR-6).
func TestERR_6_SettledInPart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1")
		p := s.subscribe("tales", credits(2))
		p.takes()
		tokens := []semantics.LockToken{p.unsettled["a/1"], p.unsettled["b/1"]}
		failing := func(failed ...string) semantics.Settlement {
			return func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
				for _, id := range failed {
					if source.SessionLock == p.opened[id] {
						return nil, errAway
					}
				}
				return s.Complete(ctx, source, tokens)
			}
		}
		_, err := p.Settle(t.Context(), tokens, failing("a", "b"))
		if e := semantics.AsError(err); e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != "" {
			t.Errorf("all failed: got %v %v", e, e.Details)
		}
		_, err = p.Settle(t.Context(), tokens, failing("b"))
		if e := semantics.AsError(err); e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != semantics.OutcomeUnknown {
			t.Errorf("one failed: got %v %v", e, e.Details)
		}
		codes, err := p.Complete(t.Context(), tokens)
		s.ok(err)
		if codes[0] != semantics.MessageLockLost || codes[1] != "" {
			t.Errorf("the second try: got %q", codes)
		}
	})
}
