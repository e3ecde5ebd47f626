package settling

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// retryLog logs that settlements are retried, each code once for all settlements of an outage, and its end: when one
// succeeds and no other is retried.
type retryLog struct {
	logger *slog.Logger

	mu       sync.Mutex
	retried  int            // settlements that have failed and are not over
	began    time.Time      // since when there are some
	reported semantics.Code // in the last log line; empty: none
}

// retriedSettlement is the part of one settlement in a retryLog.
type retriedSettlement struct {
	log          *retryLog
	hasFailed    bool
	hasSucceeded bool
}

// fail notes an attempt that failed and is repeated.
func (r *retriedSettlement) fail(ctx context.Context, v Settlement, err *semantics.Error) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.hasFailed {
		r.hasFailed = true
		if l.retried == 0 {
			l.began = time.Now()
		}
		l.retried++
	}
	// A settlement may wait for a rate limit at any time; that is not an outage.
	if err.Code != l.reported && err.Code != semantics.Throttled {
		l.reported = err.Code
		l.logger.WarnContext(ctx, "messages cannot be settled; retrying until they can", "verb", v.Verb, "error", err)
	}
}

// end notes that the settlement is over.
func (r *retriedSettlement) end(ctx context.Context) {
	if !r.hasFailed {
		return
	}
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retried--
	if l.retried > 0 || l.reported == "" {
		return
	}
	l.reported = ""
	if r.hasSucceeded {
		after := time.Since(l.began).Round(time.Millisecond)
		l.logger.InfoContext(ctx, "messages can be settled again", "after", after)
	}
}
