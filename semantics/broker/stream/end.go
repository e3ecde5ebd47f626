package stream

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// Close ends the subscription in order: unsettled messages are available again at once and nothing is counted, and
// sessions are released (SESS-21). It blocks for some round trips, and until it is known whether messages in
// ReceiveAndDelete mode have reached the client.
func (s *Subscription) Close(ctx context.Context) {
	s.end(ctx, func(context.Context) bool { return true })
}

// Drop ends a subscription whose client is gone. It releases the client's messages, or leaves them locked until their
// locks expire, as the queue's OnDisconnect requires (LOCK-10). It releases messages that the client cannot have seen
// in any case (RECV-7). It blocks as Close does.
func (s *Subscription) Drop(ctx context.Context) {
	s.end(ctx, func(ctx context.Context) bool {
		queue, err := s.broker.Entity(ctx, s.source.Path)
		return err == nil && queue.Options.OnDisconnect == semantics.ReleaseOnDisconnect
	})
}

// Detach ends a subscription that the client did not ask to end. The client keeps its messages: their locks hold until
// they expire, and the client may settle them by calls. Detach releases messages that the client cannot have seen, and
// sessions of which it has none. It blocks as Close does.
func (s *Subscription) Detach(ctx context.Context) {
	s.end(ctx, func(context.Context) bool { return false })
}

// end runs the first of the ends and makes the others wait for it. releases reports whether the client's messages are
// released.
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

// endLocks releases the client's messages, except those that it keeps. If that fails, the locks expire.
func (s *Subscription) endLocks(ctx context.Context, releases bool) {
	messages, sessions := s.account.Left(releases)
	loop.Each(sessions, func(lock semantics.LockToken) { _ = s.broker.CloseSession(ctx, s.Source(lock)) })
	if releases && len(messages) > 0 {
		s.broker.Release(ctx, s.source, messages)
	}
}
