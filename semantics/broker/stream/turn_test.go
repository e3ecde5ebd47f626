package stream_test

import (
	"testing"
	"testing/synctest"
)

// A completion takes the next message in the same step, so there is one receive for each message, and none in between.
func TestSESS_25_CompletionTakesTheNext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 3)
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		for _, step := range []struct{ done, next string }{{"a/1", "a/2"}, {"a/2", "a/3"}} {
			before := s.store.count("Receive")
			p.complete(step.done)
			p.wants(step.next)
			if n := s.store.count("Receive") - before; n != 1 {
				t.Errorf("%d receives follow the completion of %s, want 1", n, step.done)
			}
		}
	})
}

// What a turn has taken when its session is closed goes back and is not counted.
func TestSESS_21_ClosedInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 2)
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		settled, hold := s.completeInPart(p, "a/1")
		s.ok(p.CloseSession(p.opened["a"]))
		synctest.Wait()
		close(hold)
		s.ok(<-settled)
		p.wants("-a(closed) +a a/2")
		s.wantPeeked("tales", "a/2:0")
	})
}

// While one turn takes the next message, another that completes takes none, so that no message overtakes another.
func TestSESS_25_OneTurnAtATimeTakes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 5)
		p := s.subscribe("tales", sessions(1, 2))
		p.wants("+a a/1 a/2")
		settled, hold := s.completeInPart(p, "a/1")
		p.complete("a/2")
		p.wants("")
		close(hold)
		s.ok(<-settled)
		p.wants("a/3 a/4")
		s.wantPeeked("tales", "a/3:0 a/4:0 a/5:0")
	})
}

// A turn whose receive gets no answer leaves nothing locked that no client has.
func TestSESS_25_AnswerOfATurnIsLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("tales", "a/", 3)
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		s.store.miss(1)
		p.complete("a/1")
		p.wants("a/2")
		s.wantCounts("tales", "available 1 locked 1 dead 0")
		p.abandon("a/2")
		p.wants("a/2")
		p.complete("a/2")
		p.wants("a/3")
	})
}

// completeInPart completes a message, and stops when the next one is taken until hold is closed.
func (s *stand) completeInPart(p *client, text string) (settled chan error, hold chan struct{}) {
	hold, settled = s.store.stop("Receive"), make(chan error, 1)
	tokens := p.tokensOf([]string{text})
	go func() {
		_, err := p.Complete(s.t.Context(), tokens)
		settled <- err
	}()
	synctest.Wait()
	s.store.stop("")
	return settled, hold
}
