package stream_test

import (
	"strings"
	"testing"
	"time"
)

// takesFor shows the messages that come in some time, without what the client learns of sessions and failures.
func (p *client) takesFor(s *stand, d time.Duration) string {
	p.t.Helper()
	var messages []string
	for range 10 {
		s.pass(d / 10)
		for _, word := range strings.Fields(p.takes()) {
			if strings.Contains(word, "/") {
				messages = append(messages, word)
			}
		}
	}
	return strings.Join(messages, " ")
}

func wantTaken(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// A receive whose answer is lost may have locked the next messages of the session. The next receive releases them first,
// so none of those behind them is delivered before them.
func TestSESS_25_ALostAnswerBreaksNoOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p := s.subscribe("tales", sessions(1, 1))
		s.store.miss(1)
		s.sendMany("tales", "a/", 4)
		wantTaken(t, p.takesFor(s, 30*time.Second), "a/1")
		for _, next := range []struct {
			lost           int
			complete, want string
		}{{1, "a/1", "a/2"}, {3, "a/2", "a/3"}, {0, "a/3", "a/4"}, {0, "a/4", ""}} {
			s.store.miss(next.lost)
			p.complete(next.complete)
			wantTaken(t, p.takesFor(s, time.Minute), next.want)
		}
		s.wantCounts("tales", "available 0 locked 0 dead 0")
	})
}

// A lost answer does not close the session: what the client has of it stays locked, and the others come.
func TestSESS_25_ALostAnswerTakesNothingFromTheClient(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		p := s.subscribe("tales", sessions(1, 3))
		s.sendMany("tales", "a/", 1)
		wantTaken(t, p.takesFor(s, time.Second), "a/1")
		s.store.miss(1)
		s.sendMany("tales", "a/x", 4)
		wantTaken(t, p.takesFor(s, time.Minute), "a/x1 a/x2")
		p.complete("a/1")
		wantTaken(t, p.takesFor(s, time.Minute), "a/x3")
	})
}
