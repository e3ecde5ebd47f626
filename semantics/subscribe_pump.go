package semantics

import (
	"context"
	"slices"
	"time"
)

// Pauses after failures that pass, each twice the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// pump takes messages of a source without sessions for as long as the subscription lives.
func (s *Subscription) pump() {
	pause := firstPause
	for s.life.Err() == nil {
		n := s.reserve(MaxCredits)
		if n == 0 {
			return
		}
		delivery, err := s.receive(s.life, s.source, n, MaxWait)
		switch {
		case err == nil:
			pause = firstPause
			s.recovered()
			s.deliver(nil, delivery, n)
		case !s.survives(err, n, &pause):
			return
		}
	}
}

// reserve waits until there are credits and takes up to most of them for a receive. 0: the subscription ends.
func (s *Subscription) reserve(most int) int {
	wake := make(chan struct{}, 1)
	for {
		draining := s.broker.draining
		s.mu.Lock()
		n, unsettled := min(most, s.free()), len(s.unsettled)
		switch {
		case s.broker.Draining():
			draining, n = nil, 0 // seen; now the rest is to be settled
		case n > 0:
			s.reserved += n
		}
		if n < 1 {
			s.starved = append(s.starved, wake)
		}
		s.mu.Unlock()
		switch {
		case n > 0:
			return n
		case draining == nil && unsettled == 0:
			s.fail(s.broker.refuseIfDraining())
			return 0
		}
		select {
		case <-wake:
		case <-draining:
		case <-s.life.Done():
			return 0
		}
		s.notStarved(wake)
	}
}

// notStarved takes somebody off the list who was woken for another reason, so that credits go to one that waits for them.
func (s *Subscription) notStarved(wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starved = slices.DeleteFunc(s.starved, func(other chan struct{}) bool { return other == wake })
}

func (s *Subscription) unreserve(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= n
	s.freed()
}

// receive takes up to n messages. It comes back early, with nothing, when the client takes back credits or ctx ends.
func (s *Subscription) receive(ctx context.Context, source Source, n int, maxWait time.Duration) (*Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.receiving[&cancel] = true
	if s.free() < 0 {
		cancel()
	}
	s.mu.Unlock()
	delivery, err := s.broker.Receive(ctx, source, ReceiveOptions{MaxMessages: n, MaxWait: maxWait, Mode: s.options.Mode})
	s.mu.Lock()
	delete(s.receiving, &cancel)
	s.mu.Unlock()
	if CodeOf(err) == Cancelled && s.life.Err() == nil {
		return &Delivery{broker: s.broker, source: source}, nil
	}
	return delivery, err
}

// deliver hands messages on, for which n credits were reserved. It blocks until the client has taken them.
func (s *Subscription) deliver(pump *sessionPump, delivery *Delivery, n int) {
	s.mu.Lock()
	now := time.Now()
	if s.options.Mode == PeekLock {
		for _, t := range delivery.tokens {
			s.unsettled[t] = &delivered{source: delivery.source, pump: pump, since: now, endsAt: now.Add(s.lockFor)}
		}
		if pump != nil {
			pump.inFlight += len(delivery.tokens)
		}
	}
	s.reserved -= n
	s.freed()
	s.mu.Unlock()
	if len(delivery.tokens) > 0 && !s.tell(Event{Delivery: delivery}) {
		_ = delivery.Undelivered(s.life)
		s.forget(delivery.tokens)
	}
}

// survives deals with a failed receive: one that passes is told and waited out, any other ends the subscription.
func (s *Subscription) survives(err error, n int, pause *time.Duration) bool {
	s.unreserve(n)
	if s.life.Err() != nil {
		return false
	}
	e := AsError(err)
	if e.Details[DetailCause] == "draining" {
		return true // reserve sees it
	}
	if !e.Code.Retryable() {
		s.fail(err)
		return false
	}
	s.mu.Lock()
	first := !s.troubled // once for each outage, however many sessions meet it
	s.troubled = true
	s.mu.Unlock()
	if first && !s.tell(Event{Failure: e}) {
		return false
	}
	wait := max(*pause, e.RetryAfter)
	*pause = min(2**pause, lastPause)
	return s.rest(wait)
}

// recovered notes that the store answers again.
func (s *Subscription) recovered() {
	s.mu.Lock()
	s.troubled = false
	s.mu.Unlock()
}

// rest waits. It reports false when the subscription ends meanwhile.
func (s *Subscription) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.life.Done():
		return false
	}
}

// keepLocks renews the locks of what the client has, for as long as it may have it (LOCK-9), and finds out which are lost.
func (s *Subscription) keepLocks() {
	for {
		s.mu.Lock()
		every := s.lockFor / 3
		s.mu.Unlock()
		if !s.rest(every) {
			return
		}
		s.readLockDuration()
		for source, tokens := range s.toRenew() {
			for len(tokens) > 0 {
				some := tokens[:min(len(tokens), MaxRenewTokens)]
				tokens = tokens[len(some):]
				s.renew(source, some)
			}
		}
		s.renewSessions()
		s.dropEnded()
	}
}

// readLockDuration looks for a change of the option, so that shorter locks are renewed in time.
func (s *Subscription) readLockDuration() {
	if queue, err := s.broker.store.GetQueue(s.life, s.source.Path); err == nil {
		s.mu.Lock()
		s.lockFor = queue.Options.LockDuration
		s.mu.Unlock()
	}
}

// toRenew gives the messages without session that the client may still keep.
func (s *Subscription) toRenew() map[Source][]LockToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[Source][]LockToken{}
	for token, d := range s.unsettled {
		if d.source.SessionLock.IsZero() && time.Since(d.since) < s.options.MaxAutoRenew {
			found[d.source] = append(found[d.source], token)
		}
	}
	return found
}

func (s *Subscription) renew(source Source, tokens []LockToken) {
	renewals, err := s.broker.store.RenewLocks(s.life, source, tokens)
	if err != nil {
		return // tried again in time; what is lost meanwhile is found by then
	}
	s.broker.held.renew(tokens, renewals)
	var lost []LockToken
	s.mu.Lock()
	for i, r := range renewals {
		d := s.unsettled[tokens[i]]
		switch {
		case d == nil: // settled meanwhile
		case r.Code != "":
			s.drop(tokens[i])
			lost = append(lost, tokens[i])
		default:
			d.endsAt = time.Now().Add(s.lockFor)
		}
	}
	s.lose(lost)
	s.freed()
	s.mu.Unlock()
}

// dropEnded forgets messages without session whose lock must have ended because it was not renewed.
func (s *Subscription) dropEnded() {
	var lost []LockToken
	s.mu.Lock()
	for token, d := range s.unsettled {
		if d.source.SessionLock.IsZero() && time.Now().After(d.endsAt) {
			s.drop(token)
			lost = append(lost, token)
		}
	}
	s.lose(lost)
	s.freed()
	s.mu.Unlock()
}
