package amqp

import (
	"maps"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// lock is what a delivery is settled by, and when it ends if it is not renewed.
type lock struct {
	token semantics.LockToken
	until time.Time
}

const (
	// lockGrace is how long after its end a lock is over for certain, however this clock and that of Redis differ.
	lockGrace = time.Minute
	// manyRenewed is how many renewed locks are noted before those that have ended are forgotten.
	manyRenewed = 10_000
)

// isOver reports whether the lock of a delivery has ended, so that it cannot be settled. A lock that was renewed over
// another connection looks so too: its delivery can still be settled there, or by its token.
func (c *connection) isOver(ref any) bool {
	l := ref.(lock)
	c.mu.Lock()
	defer c.mu.Unlock()
	until := l.until
	if renewed, ok := c.renewed[l.token]; ok {
		until = renewed
	}
	return hasEnded(until)
}

func hasEnded(until time.Time) bool { return time.Since(until) > lockGrace }

// noteRenewals notes until when locks were renewed.
func (c *connection) noteRenewals(tokens []semantics.LockToken, ends []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.renewed) > manyRenewed {
		maps.DeleteFunc(c.renewed, func(_ semantics.LockToken, until time.Time) bool { return hasEnded(until) })
	}
	for i, token := range tokens {
		c.renewed[token] = ends[i]
	}
}
