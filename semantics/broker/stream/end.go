package stream

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// Close ends the subscription in order: what the client has not settled is available again at once and nothing is
// counted, and sessions are free (SESS-21). It blocks for some round trips, and until messages in ReceiveAndDelete mode
// that are on their way have arrived or not.
func (s *Subscription) Close(ctx context.Context) {
	s.end(ctx, func(context.Context) bool { return true })
}

// Drop ends a subscription whose client is gone. What it had is released, or left to the end of its lock, as the
// queue's OnDisconnect says (LOCK-10). What it cannot have seen is released in any case (RECV-7). It blocks as Close
// does.
func (s *Subscription) Drop(ctx context.Context) {
	s.end(ctx, func(ctx context.Context) bool {
		queue, err := s.broker.Entity(ctx, s.source.Path)
		return err == nil && queue.Options.OnDisconnect == semantics.ReleaseOnDisconnect
	})
}

// Detach ends a subscription and leaves to the client what it has: its locks hold until their ends, and it may settle
// by calls. What it cannot have seen is released, and sessions of which it has nothing are free. It is for an end that
// the client did not ask for. It blocks as Close does.
func (s *Subscription) Detach(ctx context.Context) {
	s.end(ctx, func(context.Context) bool { return false })
}

// end carries out the first of the ends and makes the others wait for it. releases says whether what the client has is
// given back.
func (s *Subscription) end(ctx context.Context, releases func(context.Context) bool) {
	s.ending.Do(func() {
		ctx := context.WithoutCancel(ctx)
		s.mu.Lock()
		s.stop(nil) // no delivery is taken from now on
		s.mu.Unlock()
		<-s.over
		s.removing.Wait()
		ctx, cancel := context.WithTimeout(ctx, delivery.SettleTimeout)
		defer cancel()
		s.giveBack(ctx, releases(ctx))
		s.streams.unregister(s.options.ID)
	})
}

// giveBack carries out what becomes of what the client had. Failures are made up for by the ends of the locks.
func (s *Subscription) giveBack(ctx context.Context, releases bool) {
	s.mu.Lock()
	var plain, free []semantics.LockToken
	unsettled := map[semantics.LockToken]bool{}
	for token, d := range s.unsettled {
		unsettled[d.source.SessionLock] = true
		if d.source.SessionLock.IsZero() {
			plain = append(plain, token)
		}
	}
	for lock, p := range s.sessions {
		if !p.isClosed &&
			(releases || !unsettled[lock]) { // one of which the client has nothing has nothing to wait for
			free = append(free, lock)
		}
	}
	s.mu.Unlock()
	loop.Each(free, func(lock semantics.LockToken) { _ = s.broker.CloseSession(ctx, s.Source(lock)) })
	if releases && len(plain) > 0 {
		s.broker.Release(ctx, s.source, plain)
	}
}

// fail ends the subscription with a reason that does not pass.
func (s *Subscription) fail(err error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = semantics.AsError(err)
	}
	s.mu.Unlock()
	s.stop(err)
}
