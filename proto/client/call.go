package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// retryTimeout is the most that a call is repeated. The sidecar remembers a request id for two minutes from when it ran
// the first try, which may have been at once (IDEM-1).
const retryTimeout = 110 * time.Second

// Pauses before a call is repeated, each twice the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// effect says what a repeat of a call does when the first try took effect and its answer was lost.
type effect bool

const (
	repeatable effect = true  // the same as the first try alone
	once       effect = false // something else: repeat it only if the first try certainly had no effect
)

// call makes a call and repeats it, with longer and longer pauses, while it fails for a reason that passes. try is told
// whether an earlier one may have taken effect. The error is an *Error.
func (l *lifetime) call(ctx context.Context, of effect, try func(ctx context.Context, mayBeDone bool) error) error {
	if l.ctx.Err() != nil {
		return errClosed
	}
	ctx, release := l.with(ctx)
	defer release()
	began, mayBeDone := time.Now(), false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try(ctx, mayBeDone)
		if err == nil {
			return nil
		}
		failure := *ErrorOf(err)
		mayBeDone = mayBeDone || failure.OutcomeUnknown
		switch {
		case l.ctx.Err() != nil:
			return errClosed
		case ctx.Err() != nil:
			failure.Code, failure.Message, failure.Retryable = CodeCancelled, ctx.Err().Error(), false
			failure.OutcomeUnknown = true
			return cancelled(ctx, &failure)
		}
		if !failure.passes() {
			return &failure
		}
		failure.OutcomeUnknown = mayBeDone
		wait := max(pause, failure.RetryAfter)
		wait += rand.N(wait / 4) //nolint:gosec // so that clients do not come back all at once
		if of == once && mayBeDone || time.Since(began)+wait > l.client.retryTimeout {
			return &failure
		}
		select {
		case <-time.After(wait):
		case <-l.ctx.Done():
			return errClosed
		case <-ctx.Done():
			return cancelled(ctx, &failure)
		}
	}
}

// passes reports whether the call should be repeated without asking the caller. A full queue or a session that another
// receiver holds may pass too, but what to do about them is the caller's choice.
func (e *Error) passes() bool {
	switch e.Code {
	case CodeConnectionLost:
		return e.Retryable // not at an address of HTTP
	case CodeStoreUnavailable, CodeThrottled:
		return true
	default:
		return false
	}
}
