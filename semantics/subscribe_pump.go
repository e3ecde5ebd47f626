package semantics

import (
	"context"
	"time"
)

// Pauses after failures that pass, each twice the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// maxEventBytes bounds the messages of one event, unless a single one is larger, so that a client's limit of what it takes at once
// suffices whatever its credits are.
const maxEventBytes = 256 << 10

// pump takes messages of a source without sessions for as long as the subscription lives.
func (s *Subscription) pump() {
	pause := firstPause
	for {
		n := s.awaitCredits()
		if n == 0 {
			return
		}
		delivery, err := s.receive(s.life, s.source, n, MaxWait)
		if err == nil {
			pause = firstPause
			s.recovered()
			s.deliver(nil, delivery, n)
			continue
		}
		s.unuse(nil, n)
		if !s.survives(err, &pause, nil) {
			return
		}
	}
}

// awaitCredits waits until there are credits and takes all. 0: the subscription ends.
func (s *Subscription) awaitCredits() int {
	for {
		isDraining := s.broker.Draining()
		s.mu.Lock()
		n, inHand := s.credits.free(), len(s.unsettled)
		if n > 0 && !isDraining {
			s.use(nil, n)
		}
		s.mu.Unlock()
		switch {
		case s.life.Err() != nil:
			return 0
		case isDraining && inHand == 0:
			s.fail(s.broker.refuseIfDraining())
			return 0
		case n > 0 && !isDraining:
			return n
		}
		s.pass(s.wake, isDraining, nil)
	}
}

// pass waits for something to happen: a wake-up, the end of the subscription, that the Broker drains, unless that is known already,
// or an instant.
func (s *Subscription) pass(wake <-chan struct{}, isDraining bool, instant <-chan time.Time) {
	draining := s.broker.draining
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

// receive takes up to n messages, for which there are credits. It comes back early, with nothing, when the client takes credits
// back or ctx ends.
func (s *Subscription) receive(ctx context.Context, source Source, n int, maxWait time.Duration) (*Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	unwanted := context.AfterFunc(s.credits.wanted, cancel)
	if s.credits.free() < 0 {
		cancel()
	}
	s.mu.Unlock()
	defer unwanted()
	delivery, err := s.broker.receive(ctx, source, ReceiveOptions{MaxMessages: n, MaxWait: maxWait, Mode: s.options.Mode})
	if CodeOf(err) == Cancelled && s.life.Err() == nil {
		return &Delivery{broker: s.broker, source: source, mode: s.options.Mode}, nil
	}
	return delivery, err
}

// deliver hands messages on, for which n credits are used. It blocks until the client has taken them, unless they were fetched ahead.
// What the client has taken back the credits for, or what is of a session that is being given up, goes back at once.
func (s *Subscription) deliver(p *sessionPump, delivery *Delivery, n int) {
	s.mu.Lock()
	s.use(p, len(delivery.tokens)-n)
	keep := max(len(delivery.tokens)+min(s.credits.free(), 0), 0)
	if p != nil && p.leaving != nil || s.life.Err() != nil {
		keep = 0
	}
	surplus := delivery.split(keep)
	if s.ahead != nil {
		s.ahead.add(delivery.split(0))
	}
	s.book(p, delivery)
	s.freed()
	s.mu.Unlock()
	if len(surplus.tokens) > 0 {
		_ = surplus.Undelivered(s.life) // what cannot be given back comes again when its lock ends
		s.unuse(p, len(surplus.tokens))
	}
	s.hand(delivery)
}

// book notes messages that are on their way to the client. The caller holds the mutex.
func (s *Subscription) book(p *sessionPump, delivery *Delivery) {
	now := time.Now()
	for _, t := range delivery.tokens {
		s.unsettled[t] = &delivered{source: delivery.source, pump: p, since: now, endsAt: now.Add(s.lockFor)}
	}
	if p != nil && len(delivery.tokens) > 0 {
		p.lastActive = now
	}
}

// hand gives messages that were booked to the client, piece by piece, and blocks until it has taken them.
func (s *Subscription) hand(delivery *Delivery) {
	if s.options.Mode == PeekLock {
		s.broker.held.own(delivery.tokens, s)
	}
	for len(delivery.tokens) > 0 {
		rest := delivery.split(delivery.fitting(maxEventBytes))
		if !s.tell(Event{Delivery: delivery}) {
			s.giveUp(s.life, Event{Delivery: delivery})
			s.giveUp(s.life, Event{Delivery: rest})
			return
		}
		delivery = rest
	}
}

// split leaves the first n messages in a delivery and gives the others as one of their own.
func (d *Delivery) split(n int) *Delivery {
	rest := *d
	rest.Messages, rest.tokens = d.Messages[n:], d.tokens[n:]
	d.Messages, d.tokens = d.Messages[:n:n], d.tokens[:n:n]
	return &rest
}

// fitting is how many of the first messages have no more bytes together than most, but at least one.
func (d *Delivery) fitting(most int64) int {
	for i, m := range d.Messages {
		if most -= m.Size; most < 0 {
			return max(i, 1)
		}
	}
	return len(d.Messages)
}

// keep leaves only the messages whose tokens are wanted. The others are lost, so nobody removes them.
func (d *Delivery) keep(wanted func(LockToken) bool) {
	n := 0
	for i, t := range d.tokens {
		if wanted(t) {
			d.Messages[n], d.tokens[n] = d.Messages[i], t
			n++
		}
	}
	d.broker.removals.end(d, len(d.tokens)-n)
	d.Messages, d.tokens = d.Messages[:n], d.tokens[:n]
}

// survives deals with a failure of a pump. One that passes is told, once for each outage, and waited out, unless wake is poked; any
// other ends the subscription.
func (s *Subscription) survives(err error, pause *time.Duration, wake <-chan struct{}) bool {
	e := AsError(err)
	switch {
	case s.life.Err() != nil:
		return false
	case e.Details[DetailCause] == "draining":
		return true // every pump looks for that itself
	case !e.Code.Retryable():
		s.fail(err)
		return false
	}
	if e.Code != Throttled && s.firstTrouble() && !s.tell(Event{Failure: e}) {
		return false
	}
	timer := time.NewTimer(max(*pause, e.RetryAfter))
	defer timer.Stop()
	*pause = min(2**pause, lastPause)
	s.pass(wake, s.broker.Draining(), timer.C)
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
