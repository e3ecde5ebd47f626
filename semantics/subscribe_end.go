package semantics

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Close ends the subscription in order: what the client has not settled is available again at once and nothing is counted, and
// sessions are free (SESS-21). It blocks for some round trips, and until messages in ReceiveAndDelete mode that are on their way
// have arrived or not.
func (s *Subscription) Close(ctx context.Context) {
	s.end(ctx, func(context.Context) bool { return true })
}

// Drop ends a subscription whose client is gone. What it had is released, or left to the end of its lock, as the queue's
// OnDisconnect says (LOCK-10). What it cannot have seen is released in any case (RECV-7). It blocks as Close does.
func (s *Subscription) Drop(ctx context.Context) {
	s.end(ctx, func(ctx context.Context) bool {
		queue, err := s.broker.getSource(ctx, s.source.Path)
		return err == nil && queue.Options.OnDisconnect == ReleaseOnDisconnect
	})
}

// Detach ends a subscription and leaves to the client what it has: its locks hold until their ends, and it may settle by calls.
// What it cannot have seen is released, and sessions of which it has nothing are free. It is for an end that the client did
// not ask for. It blocks as Close does.
func (s *Subscription) Detach(ctx context.Context) {
	s.end(ctx, func(context.Context) bool { return false })
}

// end carries out the first of the ends and makes the others wait for it. releases says whether what the client has is given back.
func (s *Subscription) end(ctx context.Context, releases func(context.Context) bool) {
	s.ending.Do(func() {
		ctx := context.WithoutCancel(ctx)
		s.mu.Lock()
		s.stop(nil) // no delivery is taken from now on
		s.mu.Unlock()
		<-s.over
		s.hands.Wait()
		ctx, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		s.giveBack(ctx, releases(ctx))
		s.broker.subscriptions.unregister(s.options.ID)
	})
}

// giveBack carries out what becomes of what the client had. Failures are made up for by the ends of the locks.
func (s *Subscription) giveBack(ctx context.Context, releases bool) {
	s.mu.Lock()
	var plain, free []LockToken
	inHand := map[LockToken]bool{}
	for token, d := range s.unsettled {
		inHand[d.source.SessionLock] = true
		if d.source.SessionLock.IsZero() {
			plain = append(plain, token)
		}
	}
	for lock, p := range s.sessions {
		if !p.isClosed && (releases || !inHand[lock]) { // one of which the client has nothing has nothing to wait for
			free = append(free, lock)
		}
	}
	s.mu.Unlock()
	sideBySide(free, func(lock LockToken) { _ = s.broker.closeSession(ctx, s.Source(lock)) })
	if releases && len(plain) > 0 {
		_, _ = s.broker.settleFree(ctx, s.source, plain, s.broker.store.Release)
	}
}

// fail ends the subscription with a reason that does not pass.
func (s *Subscription) fail(err error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = AsError(err)
	}
	s.mu.Unlock()
	s.stop(err)
}

// mostSideBySide is how many calls for sessions a subscription makes at a time.
const mostSideBySide = 32

// sideBySide does something for each item and waits for all. A panic of one is that of the caller.
func sideBySide[T any](items []T, do func(T)) {
	if len(items) == 1 {
		do(items[0])
		return
	}
	var work sync.WaitGroup
	var panicked atomic.Pointer[string]
	places := make(chan struct{}, mostSideBySide)
	for _, item := range items {
		places <- struct{}{}
		work.Go(func() {
			defer func() {
				if value := recover(); value != nil {
					text := fmt.Sprintf("%v\n%s", value, debug.Stack())
					panicked.Store(&text)
				}
				<-places
			}()
			do(item)
		})
	}
	work.Wait()
	if text := panicked.Load(); text != nil {
		panic(*text)
	}
}
