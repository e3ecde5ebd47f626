package reply

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// settlement is what becomes of some replies.
type settlement struct {
	source      semantics.Source
	tokens      []semantics.LockToken
	verb        semantics.Settlement
	isOfOrphans bool
}

// settle carries a settlement out, and counts the orphans. One that is not locked any more, although the session is,
// was completed by a try whose answer was lost.
func (c *consumer) settle(ctx context.Context, what *settlement) error {
	codes, err := what.verb(ctx, what.source, what.tokens)
	if err != nil || !what.isOfOrphans {
		return err
	}
	for _, code := range codes {
		if code != semantics.SessionLockLost {
			c.requests.orphans.Add(1)
		}
	}
	return nil
}

// keepLocked notes a settlement that failed.
func (c *consumer) keepLocked(what *settlement) {
	c.unsettled = append(c.unsettled, what)
	loop.Poke(c.failed)
}

// settleAgain repeats, until ctx ends, settlements that failed. Without that the replies would stay locked, and in the
// way of others (SESS-27), for as long as the session is held.
func (c *consumer) settleAgain(ctx context.Context) {
	pause := loop.FirstPause
	for {
		select {
		case <-c.failed:
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, loop.LastPause)
		if c.settleKept(ctx) {
			pause = loop.FirstPause
		}
	}
}

// settleKept runs the settlements that are kept, and stops, with false, at a failure that passes. What is of an earlier
// session is found to be lost, which settles it too.
func (c *consumer) settleKept(ctx context.Context) bool {
	for {
		c.mu.Lock()
		if len(c.unsettled) == 0 {
			c.mu.Unlock()
			return true
		}
		what := c.unsettled[0]
		c.mu.Unlock()
		if err := c.settle(ctx, what); err != nil && semantics.CodeOf(err).Retryable() {
			loop.Poke(c.failed)
			return false
		}
		c.mu.Lock()
		c.unsettled = c.unsettled[1:]
		c.mu.Unlock()
	}
}
