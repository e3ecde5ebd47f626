package access

import (
	"context"
	"time"
)

// checkPause is how often something that lasts checks that it is still permitted (AUTH-4).
const checkPause = 5 * time.Second

// While returns a context that ends when check fails, which is its cause then. It calls check every few seconds, until
// ctx ends or the caller calls stop. What lasts, such as a subscription, uses it: a policy may change meanwhile.
func While(ctx context.Context, check func() error) (permitted context.Context, stop func()) {
	permitted, cancel := context.WithCancelCause(ctx)
	go func() {
		again := time.NewTicker(checkPause)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				if err := check(); err != nil {
					cancel(err)
					return
				}
			case <-permitted.Done():
				return
			}
		}
	}()
	return permitted, func() { cancel(nil) }
}
