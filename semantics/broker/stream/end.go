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

// end runs the first of the ends and makes the others wait for it. releases reports whether what the client has is
// given back.
func (s *Subscription) end(ctx context.Context, releases func(context.Context) bool) {
	s.ending.Do(func() {
		ctx := context.WithoutCancel(ctx)
		s.account.Stop(nil)
		<-s.over
		s.account.Removals.Wait()
		ctx, cancel := context.WithTimeout(ctx, delivery.SettleTimeout)
		defer cancel()
		s.endLocks(ctx, releases(ctx))
		s.streams.unregister(s.options.ID)
	})
}

// endLocks gives back what the client had, as far as it does not keep it. If that fails, the locks expire.
func (s *Subscription) endLocks(ctx context.Context, releases bool) {
	messages, sessions := s.account.Left(releases)
	loop.Each(sessions, func(lock semantics.LockToken) { _ = s.broker.CloseSession(ctx, s.Source(lock)) })
	if releases && len(messages) > 0 {
		s.broker.Release(ctx, s.source, messages)
	}
}
