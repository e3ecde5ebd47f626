package obs

import (
	"context"
	"sync/atomic"
	"time"
)

// WaitTimer measures how long one call waits for messages or a session, to subtract it from the duration of the call.
// It is safe for concurrent use.
type WaitTimer struct{ sum atomic.Int64 }

type waitingKey struct{}

// WithWaitTimer adds a WaitTimer to the context of a call, for Calls.Done.
func WithWaitTimer(ctx context.Context) (context.Context, *WaitTimer) {
	w := &WaitTimer{}
	return context.WithValue(ctx, waitingKey{}, w), w
}

// Begin starts a measurement. The returned function ends it and must be called once. If w is nil, nothing is measured.
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
