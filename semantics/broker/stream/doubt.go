package stream

import (
	"maps"
	"slices"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// doubt is a settlement whose answer was lost, so that nobody knows whether it took effect (ERR-6).
type doubt struct {
	source semantics.Source
	verb   semantics.Settlement
}

// noteDoubt notes how a settlement failed. The caller holds the mutex.
func (g settleGroup) noteDoubt(verb semantics.Settlement, err error) {
	if semantics.AsError(err).Details[semantics.DetailOutcome] != semantics.OutcomeUnknown {
		return
	}
	what := &doubt{source: g.source, verb: verb}
	for _, d := range g.books {
		d.doubt = what
	}
}

// resolveDoubts repeats settlements in doubt, which changes nothing if they took effect. Whatever the client does then,
// the credits of what it has settled come back, and a session does not wait for a message that is gone. What fails is
// repeated at the next look.
func (s *Subscription) resolveDoubts() {
	groups := map[*doubt]*settleGroup{}
	s.mu.Lock()
	for token, d := range s.unsettled {
		if d.doubt == nil || d.settling > 0 {
			continue
		}
		g := groups[d.doubt]
		if g == nil {
			g = &settleGroup{source: d.doubt.source}
			groups[d.doubt] = g
		}
		g.add(token, d)
	}
	s.mu.Unlock()
	loop.Each(slices.Collect(maps.Keys(groups)), func(what *doubt) {
		_, _ = s.settle(s.life, *groups[what], what.verb)
	})
}
