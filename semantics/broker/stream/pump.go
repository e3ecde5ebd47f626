package stream

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// pump takes messages of a source without sessions for as long as the subscription lives.
func (s *Subscription) pump() {
	pause := loop.FirstPause
	for {
		n := s.awaitCredits()
		if n == 0 {
			return
		}
		taken, err := s.receive(s.life, s.source, n, semantics.MaxWait)
		if err == nil {
			pause = loop.FirstPause
			s.troubled.Store(false)
			s.deliver(taken, n)
			continue
		}
		s.account.Unuse(n)
		if !s.survives(err, &pause) {
			return
		}
	}
}

// awaitCredits waits until there are credits and takes all, or as many as one receive may ask for. 0: the subscription
// ends.
func (s *Subscription) awaitCredits() int {
	for {
		isDraining := s.isDraining()
		n, unsettled := s.account.UseAll(isDraining)
		switch {
		case s.life.Err() != nil:
			return 0
		case isDraining && unsettled == 0:
			s.account.Stop(semantics.Draining())
			return 0
		case n > 0:
			return n
		}
		s.pass(s.account.CreditsFree, isDraining, nil)
	}
}

// pass waits for something to happen: a wake-up, the end of the subscription, that the Broker drains, unless that is
// known already, or an instant.
func (s *Subscription) pass(wake <-chan struct{}, isDraining bool, instant <-chan time.Time) {
	draining := s.broker.Draining()
	if isDraining {
		draining = nil
	}
	select {
	case <-wake:
	case <-draining:
	case <-instant:
	case <-s.life.Done():
	}
}

// receive takes up to n messages, for which there are credits. It comes back early, with nothing, when the client takes
// credits back or ctx ends.
func (s *Subscription) receive(
	ctx context.Context, source semantics.Source, n int, maxWait time.Duration,
) (*delivery.Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.account.WhileWanted(cancel)()
	taken, err := s.broker.Take(ctx, source, n, maxWait, s.options.Mode, s.account)
	if semantics.CodeOf(err) == semantics.Cancelled && s.life.Err() == nil {
		return &delivery.Delivery{}, nil
	}
	return taken, err
}

// deliver hands messages on, for which n credits are used. It blocks until the client has taken them, unless they were
// fetched ahead. What the client has taken back the credits for goes back at once.
func (s *Subscription) deliver(taken *delivery.Delivery, n int) {
	if surplus := s.account.Deliver(taken, n); surplus != nil {
		s.giveBack(surplus)
	}
	s.handOver(taken)
}

// giveBack releases messages that the client cannot have seen, and their credits.
func (s *Subscription) giveBack(surplus *delivery.Delivery) {
	_ = surplus.Undelivered(s.life) // what cannot be given back comes again when its lock ends
	s.account.Unuse(len(surplus.Tokens()))
}

// handOver hands booked messages to the client, piece by piece, and blocks until it has taken them.
func (s *Subscription) handOver(taken *delivery.Delivery) {
	for len(taken.Tokens()) > 0 {
		rest := account.Piece(taken)
		if !s.tell(Event{Delivery: taken}) {
			s.giveUp(s.life, Event{Delivery: taken})
			s.giveUp(s.life, Event{Delivery: rest})
			return
		}
		taken = rest
	}
}

// survives handles a failure of a pump. One that passes is told, once for each outage, and waited out; any other ends
// the subscription.
func (s *Subscription) survives(err error, pause *time.Duration) bool {
	e := semantics.AsError(err)
	switch {
	case s.life.Err() != nil:
		return false
	case e.Details[semantics.DetailCause] == semantics.CauseDraining:
		return true // every caller looks for that itself
	case !e.Code.Retryable():
		s.account.Stop(err)
		return false
	}
	if e.Code != semantics.Throttled && !s.troubled.Swap(true) && !s.tell(Event{Failure: e}) {
		return false
	}
	timer := time.NewTimer(max(*pause, e.RetryAfter))
	defer timer.Stop()
	*pause = min(2**pause, loop.LastPause)
	s.pass(nil, s.isDraining(), timer.C)
	return s.life.Err() == nil
}
