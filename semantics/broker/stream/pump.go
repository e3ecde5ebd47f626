package stream

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// maxEventBytes bounds the messages of one event, unless a single one is larger, so that a client's limit of what it
// takes at once suffices whatever its credits are.
const maxEventBytes = 256 << 10

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
			s.recovered()
			s.deliver(nil, taken, n)
			continue
		}
		s.unuse(nil, n)
		if !s.survives(err, &pause, nil) {
			return
		}
	}
}

// awaitCredits waits until there are credits and takes all, or as many as one receive may ask for. 0: the subscription
// ends.
func (s *Subscription) awaitCredits() int {
	for {
		isDraining := s.isDraining()
		s.mu.Lock()
		if s.ahead != nil {
			s.ahead.limit()
		}
		n, unsettled := min(s.credits.free(), semantics.MaxReceiveMessages), len(s.unsettled)
		if n > 0 && !isDraining {
			s.use(nil, n)
		}
		s.mu.Unlock()
		switch {
		case s.life.Err() != nil:
			return 0
		case isDraining && unsettled == 0:
			s.fail(semantics.Draining())
			return 0
		case n > 0 && !isDraining:
			return n
		}
		s.pass(s.wake, isDraining, nil)
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
	s.mu.Lock()
	unwanted := context.AfterFunc(s.credits.wanted, cancel)
	if s.credits.free() < 0 {
		cancel()
	}
	s.mu.Unlock()
	defer unwanted()
	taken, err := s.broker.Take(ctx, source, n, maxWait, s.options.Mode)
	if semantics.CodeOf(err) == semantics.Cancelled && s.life.Err() == nil {
		return &delivery.Delivery{}, nil
	}
	return taken, err
}

// deliver hands messages on, for which n credits are used. It blocks until the client has taken them, unless they were
// fetched ahead. What the client has taken back the credits for, or what is of a session that is being given up, goes
// back at once.
func (s *Subscription) deliver(p *sessionPump, taken *delivery.Delivery, n int) {
	s.mu.Lock()
	s.use(p, len(taken.Tokens())-n)
	keep := max(len(taken.Tokens())+min(s.credits.free(), 0), 0)
	if p != nil && p.leaving != nil || s.life.Err() != nil {
		keep = 0
	}
	surplus := taken.Split(keep)
	if s.ahead != nil {
		s.ahead.add(taken.Split(0))
	}
	s.book(p, taken)
	s.freed()
	s.mu.Unlock()
	if len(surplus.Tokens()) > 0 {
		_ = surplus.Undelivered(s.life) // what cannot be given back comes again when its lock ends
		s.unuse(p, len(surplus.Tokens()))
	}
	s.handOver(taken)
}

// book notes messages that are on their way to the client. The caller holds the mutex.
func (s *Subscription) book(p *sessionPump, taken *delivery.Delivery) {
	now := time.Now()
	for _, t := range taken.Tokens() {
		s.unsettled[t] = &delivered{source: taken.Source(), pump: p, since: now, endsAt: now.Add(s.lockFor)}
	}
	if p != nil && len(taken.Tokens()) > 0 {
		p.lastActive = now
	}
}

// handOver gives messages that were booked to the client, piece by piece, and blocks until it has taken them.
func (s *Subscription) handOver(taken *delivery.Delivery) {
	if s.options.Mode == semantics.PeekLock {
		s.broker.Own(taken.Tokens(), books{s})
	}
	for len(taken.Tokens()) > 0 {
		rest := taken.Split(semantics.Fitting(taken.Messages, maxEventBytes, (*semantics.Received).AnswerSize))
		if !s.tell(Event{Delivery: taken}) {
			s.giveUp(s.life, Event{Delivery: taken})
			s.giveUp(s.life, Event{Delivery: rest})
			return
		}
		taken = rest
	}
}

// survives deals with a failure of a pump. One that passes is told, once for each outage, and waited out, unless wake
// is poked; any other ends the subscription.
func (s *Subscription) survives(err error, pause *time.Duration, wake <-chan struct{}) bool {
	e := semantics.AsError(err)
	switch {
	case s.life.Err() != nil:
		return false
	case e.Details[semantics.DetailCause] == semantics.CauseDraining:
		return true // every pump looks for that itself
	case !e.Code.Retryable():
		s.fail(err)
		return false
	}
	if e.Code != semantics.Throttled && s.firstTrouble() && !s.tell(Event{Failure: e}) {
		return false
	}
	timer := time.NewTimer(max(*pause, e.RetryAfter))
	defer timer.Stop()
	*pause = min(2**pause, loop.LastPause)
	s.pass(wake, s.isDraining(), timer.C)
	return s.life.Err() == nil
}

// firstTrouble says whether an outage is news to the client, however many sessions meet it.
func (s *Subscription) firstTrouble() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isFirst := !s.troubled
	s.troubled = true
	return isFirst
}

// recovered notes that the store answers again.
func (s *Subscription) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubled = false
}
