package semantics

import (
	"context"
	"time"
)

// replySettlement is what becomes of some replies.
type replySettlement struct {
	source      Source
	tokens      []LockToken
	verb        Settlement
	isOfOrphans bool
}

// settle carries a settlement out, and counts the orphans. One that is not locked any more, although the session is, was completed
// by a try whose answer was lost.
func (d *replyDesk) settle(ctx context.Context, what *replySettlement) error {
	codes, err := what.verb(ctx, what.source, what.tokens)
	if err != nil || !what.isOfOrphans {
		return err
	}
	for _, code := range codes {
		if code != SessionLockLost {
			d.requests.orphans.Add(1)
		}
	}
	return nil
}

// keep notes a settlement that failed. The caller holds the mutex.
func (d *replyDesk) keep(what *replySettlement) {
	d.unsettled = append(d.unsettled, what)
	poke(d.failed)
}

// settleAgain repeats, until ctx ends, settlements that failed. Without that the replies would stay locked, and in the way of
// others (SESS-27), for as long as the session is held.
func (d *replyDesk) settleAgain(ctx context.Context) {
	pause := firstPause
	for {
		select {
		case <-d.failed:
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
		pause = min(2*pause, lastPause)
		if d.settleKept(ctx) {
			pause = firstPause
		}
	}
}

// settleKept carries out what is kept, and stops, with false, at a failure that passes. What is of an earlier session is found to be
// lost, which settles it too.
func (d *replyDesk) settleKept(ctx context.Context) bool {
	for {
		d.requests.mu.Lock()
		if len(d.unsettled) == 0 {
			d.requests.mu.Unlock()
			return true
		}
		what := d.unsettled[0]
		d.requests.mu.Unlock()
		if err := d.settle(ctx, what); err != nil && CodeOf(err).Retryable() {
			poke(d.failed)
			return false
		}
		d.requests.mu.Lock()
		d.unsettled = d.unsettled[1:]
		d.requests.mu.Unlock()
	}
}
