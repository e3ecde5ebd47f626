package semantics

import (
	"context"
	"time"
)

// sessionTurn is how long a session that always has messages keeps its place while others are ready, so that none starves.
const sessionTurn = 500 * time.Millisecond

// sessionPump takes the messages of one session that a subscription holds. Its fields are under the subscription's mutex.
type sessionPump struct {
	sub     *Subscription
	session *Session
	source  Source

	inFlight   int                // messages that the client has
	wake       chan struct{}      // has room for one: something has changed
	waits      bool               // in a receive that waits
	foundNone  bool               // by its last receive
	lastActive time.Time          // when it last had a message, or one of its messages was settled
	turn       time.Time          // since when it has its place
	leaving    *SessionEnd        // it is to give the session up
	interrupt  context.CancelFunc // of its receive
}

// acceptSessions accepts sessions for as long as the subscription lives: while there is room, or when one that is held has
// nothing to do and can make room for one that has.
func (s *Subscription) acceptSessions() {
	pause := firstPause
	for s.awaitRoom() {
		acceptance, err := s.acceptOne()
		switch {
		case err == nil && acceptance != nil && acceptance.Session != nil:
			pause = firstPause
			s.recovered()
			s.open(acceptance)
		case err != nil && !s.survives(err, 0, &pause):
			return
		}
	}
}

// acceptOne waits for a session that is ready. It comes back without one when there is no room for it any more.
func (s *Subscription) acceptOne() (*Acceptance, error) {
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() { // a look at each change: acceptances wait long and changes are cheap
		for {
			select {
			case <-s.room:
			case <-done:
				return
			}
			s.mu.Lock()
			room := s.hasRoom()
			s.mu.Unlock()
			if !room {
				cancel()
				return
			}
		}
	}()
	acceptance, err := s.broker.AcceptSession(ctx, s.source.Path, AcceptOptions{MaxWait: MaxWait})
	if CodeOf(err) == Cancelled && s.life.Err() == nil {
		return nil, nil //nolint:nilnil // neither a session nor a failure
	}
	return acceptance, err
}

// awaitRoom waits until a session may be accepted. False: the subscription ends.
func (s *Subscription) awaitRoom() bool {
	for {
		s.mu.Lock()
		room, held := s.hasRoom(), len(s.sessions)
		s.mu.Unlock()
		draining := s.broker.draining
		switch {
		case s.life.Err() != nil:
			return false
		case s.broker.Draining() && held == 0:
			s.fail(s.broker.refuseIfDraining())
			return false
		case s.broker.Draining():
			draining = nil // seen; now the sessions that are held are to end
		case room:
			return true
		}
		select {
		case <-s.room:
		case <-draining:
		case <-s.life.Done():
			return false
		}
	}
}

// hasRoom says whether one more session may be accepted. Each is sure of one credit. The caller holds the mutex.
func (s *Subscription) hasRoom() bool {
	if s.credits == 0 {
		return false
	}
	return !s.isFull() || s.idlest() != nil
}

// isFull says whether a further session has to take the place of another. The caller holds the mutex.
func (s *Subscription) isFull() bool {
	return len(s.sessions) >= min(s.options.MaxSessions, s.credits) || s.free() < 1
}

// idlest gives the session that has had nothing to do for longest, nil when all have. The caller holds the mutex.
func (s *Subscription) idlest() *sessionPump {
	var found *sessionPump
	for _, p := range s.sessions {
		if p.waits && p.leaving == nil && p.inFlight == 0 && (found == nil || p.lastActive.Before(found.lastActive)) {
			found = p
		}
	}
	return found
}

// open begins with a session that was accepted, in the place of the idlest one if need be.
func (s *Subscription) open(acceptance *Acceptance) {
	now := time.Now()
	p := &sessionPump{
		sub: s, session: acceptance.Session, source: acceptance.Source(), lastActive: now, turn: now,
		wake: make(chan struct{}, 1),
	}
	s.mu.Lock()
	if s.isFull() {
		other := s.idlest()
		if other == nil { // meanwhile it has got something to do
			s.mu.Unlock()
			_ = acceptance.Undelivered(s.life)
			return
		}
		other.leave(SessionYielded)
	}
	s.sessions[p.session.Lock] = p
	s.mu.Unlock()
	s.work.Go(p.run)
}

// CloseSession gives a session up: what was not settled is available again at once and nothing is counted. It does not block; the
// event SessionClosed tells when it is done. SESSION_LOCK_LOST when the subscription does not hold it.
func (s *Subscription) CloseSession(lock LockToken) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.sessions[lock]
	if p == nil {
		return SessionFailure(SessionLockLost, s.source.Path)
	}
	p.leave(SessionClosed)
	return nil
}

// leave makes a pump give its session up. The caller holds the mutex.
func (p *sessionPump) leave(why SessionEnd) {
	if p.leaving == nil {
		p.leaving = &why
	}
	if p.interrupt != nil {
		p.interrupt()
	}
	poke(p.wake)
}

func (p *sessionPump) run() {
	s := p.sub
	if !s.tell(Event{SessionOpened: p.session}) {
		return // the subscription's end closes it
	}
	pause := firstPause
	for {
		n, why := p.reserve()
		if why != nil {
			p.end(*why)
			return
		}
		if n == 0 {
			return
		}
		delivery, n, err := p.receive(n)
		switch {
		case err == nil:
			pause = firstPause
			s.recovered()
		case CodeOf(err) == SessionLockLost:
			s.unreserve(n)
			p.end(SessionLost)
			return
		case !s.survives(err, n, &pause):
			return
		}
		if err == nil {
			s.deliver(p, delivery, n)
		}
	}
}

// receive takes up to n messages, for which credits are reserved, or waits for one, for which it keeps one credit. It gives how
// many credits are reserved then.
func (p *sessionPump) receive(n int) (*Delivery, int, error) {
	s := p.sub
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	delivery, err := s.receive(ctx, p.source, n, 0)
	if err != nil || len(delivery.tokens) > 0 {
		return delivery, n, err
	}
	s.unreserve(n - 1)
	s.mu.Lock()
	p.waits, p.interrupt = true, cancel
	if p.leaving != nil {
		cancel()
	}
	poke(s.room) // there may be a place for another session now
	s.mu.Unlock()
	delivery, err = s.receive(ctx, p.source, 1, min(s.options.SessionIdle, MaxWait))
	s.mu.Lock()
	p.waits, p.interrupt = false, nil
	p.foundNone = err == nil && len(delivery.tokens) == 0
	if !p.foundNone {
		p.lastActive = time.Now()
	}
	s.mu.Unlock()
	return delivery, 1, err
}

// reserve waits until one more message may be in flight and takes credits for those that may. It gives the reason when the
// session is to be given up instead, and 0 without one when the subscription ends.
func (p *sessionPump) reserve() (int, *SessionEnd) {
	s := p.sub
	for {
		if s.life.Err() != nil {
			return 0, nil
		}
		if p.turnIsOver() {
			p.yield()
		}
		s.mu.Lock()
		own, why := p.inFlight, p.leaving
		n := min(s.options.SessionInFlight-own, s.free())
		idle := p.foundNone && own == 0 && time.Since(p.lastActive) >= s.options.SessionIdle
		waitsForTurn := own > 0 && s.isFull() && time.Since(p.turn) >= sessionTurn
		if why == nil && !idle && !waitsForTurn && n > 0 && !s.broker.Draining() {
			s.reserved += n
			s.mu.Unlock()
			return n, nil
		}
		if n < 1 && s.free() < 1 {
			s.starved = append(s.starved, p.wake)
		}
		s.mu.Unlock()
		ends := SessionIdle
		switch {
		case why != nil:
			return 0, why
		case own == 0 && s.broker.Draining():
			ends = SessionDrained
			return 0, &ends
		case idle:
			return 0, &ends
		}
		draining := s.broker.draining
		if s.broker.Draining() {
			draining = nil
		}
		quiet := time.NewTimer(max(s.options.SessionIdle, time.Millisecond)) // for one that gets no credits
		select {
		case <-p.wake:
		case <-draining:
		case <-quiet.C:
		case <-s.life.Done():
		}
		quiet.Stop()
		s.notStarved(p.wake)
	}
}

// turnIsOver says whether the session has kept its place long enough, and can give it up: nothing is in flight.
func (p *sessionPump) turnIsOver() bool {
	s := p.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.leaving == nil && time.Since(p.turn) >= sessionTurn && s.isFull() && p.inFlight == 0
}

// yield gives the place to a session that is ready, if there is one.
func (p *sessionPump) yield() {
	s := p.sub
	acceptance, err := s.broker.AcceptSession(s.life, s.source.Path, AcceptOptions{})
	s.mu.Lock()
	p.turn = time.Now()
	s.mu.Unlock()
	if err != nil || acceptance.Session == nil {
		return
	}
	now := time.Now()
	next := &sessionPump{
		sub: s, session: acceptance.Session, source: acceptance.Source(), lastActive: now, turn: now,
		wake: make(chan struct{}, 1),
	}
	s.mu.Lock()
	p.leave(SessionYielded)
	s.sessions[next.session.Lock] = next
	s.mu.Unlock()
	s.work.Go(next.run)
}

// end gives the session up and tells the client.
func (p *sessionPump) end(why SessionEnd) {
	s := p.sub
	if why != SessionLost {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), settleTimeout)
		defer cancel()
		if err := s.broker.closeSession(ctx, p.source); CodeOf(err) == SessionLockLost {
			why = SessionLost
		}
	}
	s.mu.Lock()
	delete(s.sessions, p.session.Lock)
	for token, d := range s.unsettled {
		if d.pump == p {
			delete(s.unsettled, token)
		}
	}
	s.freed()
	s.mu.Unlock()
	s.tell(Event{SessionClosed: &ClosedSession{ID: p.session.ID, Lock: p.session.Lock, Why: why}})
}

// renewSessions renews the locks of all sessions but those of which the client has had a message for too long (LOCK-9).
func (s *Subscription) renewSessions() {
	s.mu.Lock()
	var pumps []*sessionPump
	oldest := map[*sessionPump]time.Duration{}
	for _, d := range s.unsettled {
		oldest[d.pump] = max(oldest[d.pump], time.Since(d.since))
	}
	for _, p := range s.sessions {
		if p.leaving == nil && oldest[p] < s.options.MaxAutoRenew {
			pumps = append(pumps, p)
		}
	}
	s.mu.Unlock()
	for _, p := range pumps {
		until, err := s.broker.store.RenewSessionLock(s.life, p.source)
		if err == nil {
			s.broker.held.renewSession(p.source, until)
			continue
		}
		if CodeOf(err) == SessionLockLost {
			s.broker.sessionFailed(p.source, err)
			s.mu.Lock()
			p.leave(SessionLost)
			s.mu.Unlock()
		}
	}
}
