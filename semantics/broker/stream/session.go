package stream

import (
	"cmp"
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// slowLook is after what time other sessions look although a look is under way: one for a server that hangs holds up
// only its own sessions.
const slowLook = 100 * time.Millisecond

// runSessions does what is to be done for the sessions of the subscription, until it ends.
func (s *Subscription) runSessions() {
	watch := s.watchSessions()
	if watch == nil {
		return
	}
	defer watch.Close()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for s.life.Err() == nil {
		isDraining := s.isDraining()
		steps := s.account.Steps(isDraining)
		s.begin(steps)
		due.Reset(time.Hour)
		if !steps.Next.IsZero() {
			due.Reset(time.Until(steps.Next))
		}
		s.awaitSessions(watch, isDraining, due.C)
	}
	// What is taken from now on goes back where it was taken.
	for _, taken := range s.account.WithdrawAll() {
		s.giveUp(s.life, Event{Delivery: taken})
	}
}

// watchSessions begins to hear of the sessions. It returns nil if the subscription ends first.
func (s *Subscription) watchSessions() semantics.Watch {
	pause := loop.FirstPause
	for {
		watch, err := s.broker.WatchSessions(s.life, s.source.Path)
		if err == nil {
			return watch
		}
		if !s.survives(err, &pause) {
			return nil
		}
	}
}

// awaitSessions waits until something may be to be done.
func (s *Subscription) awaitSessions(watch semantics.Watch, isDraining bool, due <-chan time.Time) {
	draining := s.broker.Draining()
	if isDraining {
		draining = nil
	}
	select {
	case n := <-watch.C():
		s.account.Wake(watch.Sessions(), n == 0)
	case <-s.account.SessionsChanged:
	case <-draining:
	case <-due:
	case <-s.life.Done():
	}
}

// begin begins what is to be done. It blocks while the sessions look, for slowLook at most, so that those that change
// meanwhile look together.
func (s *Subscription) begin(steps account.Steps) {
	for _, p := range steps.Ends {
		s.work.Go(func() { s.endSession(p) })
	}
	for _, p := range steps.Yields {
		s.work.Go(func() { s.yield(p) })
	}
	if len(steps.Looks) == 0 {
		return
	}
	groups := byPartition(steps.Looks)
	done := make(chan struct{}, len(groups))
	for _, some := range groups {
		s.work.Go(func() {
			s.look(some)
			done <- struct{}{}
		})
	}
	slow := time.NewTimer(slowLook)
	defer slow.Stop()
	for range groups {
		select {
		case <-done:
		case <-slow.C:
			return
		}
	}
}

// byPartition divides looks by the partitions of their sessions, whose servers may hang.
func byPartition(looks []account.Look) map[int][]account.Look {
	groups := map[int][]account.Look{}
	for _, look := range looks {
		_, p := look.Session.Lock.Partition()
		groups[p] = append(groups[p], look)
	}
	return groups
}

// look takes messages of sessions of one partition.
func (s *Subscription) look(looks []account.Look) {
	turns := make([]semantics.Turn, len(looks))
	for i, look := range looks {
		turns[i] = semantics.Turn{Session: look.Session.Lock, Receive: look.N, Register: semantics.RegisterIfEmpty}
	}
	for i, o := range s.broker.Look(s.life, s.source.Path, turns, s.options.Mode, s.account) {
		if err := cmp.Or(o.Err, o.Failure); err != nil {
			s.lookFailed(looks[i], err)
			continue
		}
		s.troubled.Store(false)
		taken := o.Delivery
		if taken == nil {
			taken = &delivery.Delivery{}
		}
		if surplus := s.account.EndLook(looks[i], taken, o.Recheck); surplus != nil {
			s.giveBackIn(looks[i].Session, surplus)
		}
	}
}

// lookFailed handles a failure of a look. One that passes is told, once for each outage, and waited out; any other ends
// the subscription.
func (s *Subscription) lookFailed(look account.Look, err error) {
	e := semantics.AsError(err)
	s.account.FailLook(look, e.RetryAfter)
	switch {
	case s.life.Err() != nil, e.Details[semantics.DetailCause] == semantics.CauseDraining:
	case e.Code == semantics.SessionLockLost:
		look.Session.Lose()
	case !e.Code.Retryable():
		s.account.Stop(err)
	case e.Code != semantics.Throttled && !s.troubled.Swap(true):
		s.account.Fail(e)
	}
}

// giveBackIn is giveBack for messages of a session.
func (s *Subscription) giveBackIn(session *account.Session, surplus *delivery.Delivery) {
	_ = surplus.Undelivered(s.life) // what cannot be given back comes again when its lock ends
	s.account.Returned(session, len(surplus.Tokens()))
}

// yield passes the place of a session to one that is ready, if there is one.
func (s *Subscription) yield(p *account.Session) {
	accepted, err := s.broker.Accept(s.life, s.source.Path, 0)
	if err != nil {
		accepted = nil
	}
	if p.Yield(accepted) {
		s.refuse(accepted)
	}
}

// endSession releases a session. The client hears of it, and then the session begins that gets its place.
func (s *Subscription) endSession(p *account.Session) {
	for _, taken := range p.Withdraw() {
		s.giveUp(s.life, Event{Delivery: taken})
	}
	if s.life.Err() != nil {
		return // the subscription's end closes it
	}
	// If that fails, the lock expires.
	err := s.broker.CloseSession(context.WithoutCancel(s.life), s.Source(p.Lock))
	p.Closed(semantics.CodeOf(err) == semantics.SessionLockLost)
}
