package redisstore

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// A script that calls share has at most as many bytes and copies to write as fit into its time, whatever the
// subscriptions turn out to store: those that certainly do not share bodies count as a whole.
func TestWhatAPublishWeighs(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		body, copies int
		level        keyLevel // of all subscriptions, 0 = not known
		want         int
	}{
		{100, 1, 0, 2},
		{100, 2, 0, 2},
		{100, 100, 0, 51},
		{100, 100, levelSessions, 101},
		{100, 100, levelWhole, 101},
		{31 << 10, 500, 0, 1 + 31 + 250 + 500},
		{31 << 10, 500, levelSessions, 1 + 31 + 500 + 500},
	} {
		s := &Store{levels: newLearnt[keyLevel]()}
		m := &semantics.Message{Body: make([]byte, of.body)}
		p := semantics.Publication{Message: m}
		for i := range of.copies {
			name := fmt.Sprint("s", i)
			p.Copies = append(p.Copies, semantics.Copy{Subscription: name, Message: m})
			if of.level != 0 {
				s.levels.put(semantics.Fold(semantics.SubscriptionPath("News", name)), of.level)
			}
		}
		f, err := sealing{}.newFanOut(p, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.weigh("News", f); got != of.want {
			t.Errorf("%d bytes for %d subscriptions at level %q: %d, want %d", of.body, of.copies, of.level, got, of.want)
		}
	}
}
