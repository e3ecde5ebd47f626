package history

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// slow is the clock of the Redis in one round, as compared with that of the machine, by which everything is recorded.
// It is right until a loss sets it back, and is set right in the end.
type slow struct {
	back time.Duration // by how much; zero: it stays right
	gone time.Time     // from when on; zero: not yet
	// until when; zero: it is not right yet. No call with an instant in its answer is under way then.
	righted span
}

// longBack is the step back from which on clients do not wait until earlier instants are due again. The clock is
// corrected when all new messages have come.
const longBack = time.Second

// behind returns by how much the clock is behind at an instant of the machine.
func (s slow) behind(at time.Time) time.Duration {
	if s.gone.IsZero() || at.Before(s.gone) || !s.righted.began.IsZero() && !at.Before(s.righted.began) {
		return 0
	}
	return s.back
}

// when returns the first instant of the machine, from one on, at which the clock shows at least some instant.
func (s slow) when(due, from time.Time) time.Time {
	at := later(due, from)
	if s.back == 0 || s.gone.IsZero() || at.Before(s.gone) {
		return at
	}
	at = later(due.Add(s.back), later(from, s.gone))
	if s.righted.began.IsZero() || at.Before(s.righted.began) {
		return at
	}
	return later(due, later(from, s.righted.ended))
}

// until returns the end of a lock, as an answer reported it, on the machine's clock.
func (s slow) until(end time.Time, lock time.Duration, asked span) time.Time {
	if end.IsZero() || asked.ended.Before(s.gone) || s.gone.IsZero() {
		return end
	}
	if !asked.began.Before(s.gone) {
		return end.Add(s.behind(asked.began))
	}
	ran := end.Add(s.back - lock) // if it ran after the loss
	if ran.Before(asked.began.Truncate(time.Millisecond)) || ran.After(asked.ended) {
		return end
	}
	return end.Add(s.back)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// setBack lets the clock be behind from now on: the Redis that had the right one is gone.
func (r *lossRun) setBack() {
	r.clock.SetBack(r.slow.back)
	r.add(func() { r.slow.gone = time.Now() })
}

// setRight sets the clock right again, while no call with an instant in its answer is under way.
func (r *lossRun) setRight() {
	r.quiet.Lock()
	defer r.quiet.Unlock()
	righted := span{began: time.Now()}
	r.clock.SetBack(0)
	righted.ended = time.Now()
	r.add(func() { r.slow.righted = righted })
}

// clockNow returns the instant that the clock of the Redis shows.
func (r *lossRun) clockNow() time.Time {
	now := time.Now()
	return now.Add(-r.slowNow().behind(now))
}

// slowNow gives what is known of the clock so far.
func (r *lossRun) slowNow() (s slow) {
	r.add(func() { s = r.slow })
	return s
}

// awaitNew waits until all has come that was sent since the clock is behind.
func (r *lossRun) awaitNew() {
	var missing []string
	defer func() {
		for _, what := range missing {
			r.t.Logf("it did not come: %s", what)
		}
	}()
	sidecartest.Eventually(r.t, "everything new is received by a clock that is behind by "+r.slow.back.String(), func() bool {
		missing = r.newToCome()
		return len(missing) == 0
	})
}

// newToCome returns what was sent since the clock is behind and has not come, except what something of before may keep
// waiting: a session may still be held, by that clock, and what was sent before may be repeated.
func (r *lossRun) newToCome() (missing []string) {
	r.add(func() {
		came := map[place]bool{}
		for _, d := range r.deliveries {
			came[place{d.source, d.text}] = true
		}
		for _, s := range r.sends {
			isNew := s.first.After(r.lost.ended) && r.timesSent[s.text] == 1 // a first try may have stored it before
			isDue := !r.slow.when(s.due, s.first).After(time.Now())          // not if its due instant is of the right clock
			if s.outcome != done || !isNew || !isDue || s.target == inOrder {
				continue
			}
			for _, path := range r.destinations(s) {
				if !came[place{path, s.text}] {
					missing = append(missing, fmt.Sprintf("%q, sent to %s %s after the loss, at %s", s.text, s.target, r.since(s.span), path))
				}
			}
		}
	})
	return missing
}
