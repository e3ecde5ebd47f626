package obs

import (
	"context"
	"sync/atomic"
	"time"
)

// Waiting measures how long one call waits for messages or a session, so that its duration is without that. It is safe
// for concurrent use.
type WaitTimer struct{ sum atomic.Int64 }

type waitingKey struct{}

// WithWaiting puts a Waiting into the context of a call, for Calls.Done to find.
func WithWaitTimer(ctx context.Context) (context.Context, *WaitTimer) {
	w := &WaitTimer{}
	return context.WithValue(ctx, waitingKey{}, w), w
}

// Begin starts to measure, unless w is nil. The returned function must be called once, when the wait ends.
func (w *WaitTimer) Begin() (end func()) {
	if w == nil {
		return func() {}
	}
	start := time.Now()
	return func() { w.sum.Add(int64(time.Since(start))) }
}

// waited returns how long the call of ctx has waited.
func waited(ctx context.Context) time.Duration {
	if w, ok := ctx.Value(waitingKey{}).(*WaitTimer); ok {
		return time.Duration(w.sum.Load())
	}
	return 0
}
