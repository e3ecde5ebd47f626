package semantics

import "context"

// Waits is the wire's side of a call that waits: it lets the wire end the wait early when it needs the caller's place
// (QUOTA-5).
type Waits interface {
	// Begin is called when a call begins to wait. The wait ends as if its time had expired when enough is closed. The
	// call calls end when it has stopped waiting. THROTTLED: the call may not wait, and end is nil.
	Begin() (enough <-chan struct{}, end func(), err error)
}

type waitsKey struct{}

// WithWaits puts w into a context for the calls made with it. Calls without Waits wait as long as they asked to.
func WithWaits(ctx context.Context, w Waits) context.Context {
	return context.WithValue(ctx, waitsKey{}, w)
}

// BeginWait begins the wait of a call. THROTTLED as Waits.Begin.
func BeginWait(ctx context.Context) (enough <-chan struct{}, end func(), err error) {
	if w, ok := ctx.Value(waitsKey{}).(Waits); ok {
		return w.Begin()
	}
	return nil, func() {}, nil
}
