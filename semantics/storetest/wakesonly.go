package storetest

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// mostRecheck is after what time a waiting call looks again although no wake-up came, when nothing else is due.
const mostRecheck = 10 * time.Second

// wakesOnly is a Store whose waiting calls do not look again in case a wake-up got lost. So a lost wake-up is a test
// that hangs, however patient the test is. What has a cause, as a lock that ends, is looked at in time.
type wakesOnly struct{ semantics.Store }

// Receive implements semantics.Receiver.
func (s wakesOnly) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	batch, err := s.Store.Receive(ctx, source, limit, register)
	batch.RecheckAfter = unlessMost(batch.RecheckAfter)
	return batch, err
}

// CompleteAndReceive implements semantics.Receiver.
func (s wakesOnly) CompleteAndReceive(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register) (semantics.NextBatch, error) {
	next, err := s.Store.CompleteAndReceive(ctx, source, tokens, limit, register)
	next.Batch.RecheckAfter = unlessMost(next.Batch.RecheckAfter)
	return next, err
}

// AcceptNextSession implements semantics.Sessions.
func (s wakesOnly) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	session, recheck, err := s.Store.AcceptNextSession(ctx, path, register)
	return session, unlessMost(recheck), err
}

func unlessMost(recheck time.Duration) time.Duration {
	if recheck >= mostRecheck {
		return 100 * patience
	}
	return recheck
}

// Turn is by Complete and Receive, with what they do here.
func (s wakesOnly) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
