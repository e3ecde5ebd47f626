package stream

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// keepLocks renews the locks of what the client has, for as long as it may have it (LOCK-9), and finds out which are
// lost. It never waits for the client. What fails is tried again at the next look.
func (s *Subscription) keepLocks() {
	look := time.NewTicker(account.LockLook)
	defer look.Stop()
	renewed := time.Now()
	for {
		s.pass(nil, true, look.C)
		if s.life.Err() != nil {
			return
		}
		now := time.Now()
		if !s.account.HasLocks() {
			renewed = now
			continue
		}
		lockFor, isNew := s.lookAtQueue()
		isDue := isNew || s.account.TakeUrgent() || now.Sub(renewed) >= lockFor/3
		s.resolveDoubts() // first, so that a message that was settled is not found to be lost
		messages, sessions := s.renewMessages(isDue), s.renewSessions(isDue)
		if isDue && messages && sessions {
			renewed = now
		}
	}
}

// lookAtQueue returns the queue's LockDuration, and whether it has changed. A queue that is gone, or was recreated as
// another kind, ends the subscription: a pump that waits for the client to settle would not find out.
func (s *Subscription) lookAtQueue() (lockFor time.Duration, isNew bool) {
	queue, err := s.broker.Entity(s.life, s.source.Path)
	if hasSessions := queue.Options.RequiresSession && s.source.SubQueue == semantics.MainQueue; err == nil &&
		hasSessions != s.bySession {
		reason := semantics.SessionRequired
		if s.bySession {
			reason = semantics.SessionNotSupported
		}
		err = semantics.SessionFailure(reason, s.source.Path)
	}
	if err != nil {
		if !semantics.CodeOf(err).Retryable() {
			s.account.Stop(err)
		}
		return s.account.LockDuration(), false
	}
	return queue.Options.LockDuration, s.account.SetLockDuration(queue.Options.LockDuration)
}

// renewMessages renews the locks of messages without session. It reports false when that has to be tried again.
func (s *Subscription) renewMessages(isDue bool) bool {
	isDone := true
	for some := range slices.Chunk(s.account.MessagesToRenew(isDue), semantics.MaxRenewTokens) {
		renewals, err := s.broker.RenewLocks(s.life, s.source, some)
		if err != nil {
			isDone = false
			continue
		}
		s.account.MessagesRenewed(some, renewals)
		isDone = isDone && !slices.ContainsFunc(renewals, func(r semantics.Renewal) bool { return r.Code.Retryable() })
	}
	return isDone
}

// renewSessions renews the locks of sessions, or finds out which are lost. It reports false when that has to be tried
// again.
func (s *Subscription) renewSessions(isDue bool) bool {
	var failed atomic.Bool
	loop.Each(s.account.SessionsToRenew(isDue), func(session *account.Session) {
		err := s.broker.RenewSession(s.life, s.Source(session.Lock))
		switch {
		case semantics.CodeOf(err) == semantics.SessionLockLost:
			session.Lose()
		case err != nil:
			failed.Store(true)
		default:
			session.Renewed()
		}
	})
	return !failed.Load()
}
