package stream

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// sessionTurn is how long a session that always has messages keeps its place while others may be ready, so that none
// starves. One that has several messages in flight then takes no more for as long again, so that it can come to an end.
const sessionTurn = 500 * time.Millisecond

// sessionPump takes the messages of one session that a subscription holds. Its fields are under the subscription's
// mutex.
type sessionPump struct {
	sub     *Subscription
	session *semantics.Session
	source  semantics.Source
	wake    chan struct{} // has room for one: something has changed

	used       int                // credits: for messages that the client has and for a receive under way
	lastActive time.Time          // when it last had a message, or one of its messages was settled
	turn       time.Time          // since when it has its place
	endsAt     time.Time          // no earlier than the end of its lock, by this process' clock
	isWaiting  bool               // in a receive that waits, for which it uses one credit
	isOpen     bool               // the client knows of it
	isCounted  bool               // among those that have nothing to do
	idle       *time.Timer        // runs while it waits and has nothing in flight
	interrupt  context.CancelFunc // of that receive
	leaving    *SessionEnd        // it is to give the session up
	isClosed   bool               // it has done so
	successor  *sessionPump       // begins when this one has ended
}

// run is the life of a session with the subscription.
func (p *sessionPump) run() {
	s := p.sub
	if !s.tell(Event{SessionOpened: p.session}) {
		return // the subscription's end closes it
	}
	s.mu.Lock()
	p.isOpen = true
	s.mu.Unlock()
	pause := loop.FirstPause
	for {
		n, isOver := p.reserve()
		if isOver {
			break
		}
		taken, n, err := p.receive(n)
		if err == nil {
			pause = loop.FirstPause
			s.recovered()
			s.deliver(p, taken, n)
			continue
		}
		s.unuse(p, n)
		if semantics.CodeOf(err) == semantics.SessionLockLost {
			s.mu.Lock()
			p.lose()
			s.mu.Unlock()
		} else if !s.survives(err, &pause, p.wake) {
			return
		}
	}
	if s.life.Err() == nil {
		p.end()
	}
}

// reserve waits until one more message may be in flight and takes credits for those that may. isOver says that the
// session is to be given up, or that the subscription ends.
func (p *sessionPump) reserve() (n int, isOver bool) {
	s := p.sub
	for s.life.Err() == nil {
		if p.mayYield() {
			p.yield()
		}
		isDraining := s.isDraining()
		s.mu.Lock()
		n, until := p.decide(isDraining)
		isOver := p.leaving != nil
		s.mu.Unlock()
		if n > 0 || isOver {
			return n, isOver
		}
		p.await(isDraining, until)
	}
	return 0, true
}

// decide takes credits, or says that the session is to be given up, or until when to wait at most for something to
// change; zero: for ever. The caller holds the mutex.
func (p *sessionPump) decide(isDraining bool) (n int, until time.Time) {
	s := p.sub
	s.unstarve(p)
	turn := time.Since(p.turn)
	switch {
	case p.leaving != nil:
		return 0, until
	case isDraining && p.used == 0:
		p.leave(SessionDrained)
		return 0, until
	case isDraining:
		return 0, until
	case turn >= 2*sessionTurn:
		p.turn = time.Now()
	case turn >= sessionTurn && p.used > 0 && !s.hasPlace():
		s.freed() // what it may have been woken for is for others
		return 0, p.turn.Add(2 * sessionTurn)
	}
	if n = s.share(p); n > 0 {
		s.use(p, n)
		return n, until
	}
	if p.used == 0 {
		p.leave(SessionPaused)
	} else if p.used < s.options.SessionInFlight {
		s.starve(p)
	}
	return 0, until
}

func (p *sessionPump) await(isDraining bool, until time.Time) {
	var instant <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		instant = timer.C
	}
	p.sub.pass(p.wake, isDraining, instant)
}

// receive takes up to n messages, for which credits are used, or waits for one, for which it keeps one credit. It gives
// how many are used then.
func (p *sessionPump) receive(n int) (*delivery.Delivery, int, error) {
	s := p.sub
	taken, err := s.receive(s.life, p.source, n, 0)
	if err != nil || len(taken.Tokens()) > 0 {
		return taken, n, err
	}
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	s.mu.Lock()
	s.use(p, 1-n)
	p.isWaiting, p.interrupt = true, cancel
	p.countIdle()
	p.armIdle()
	if p.leaving != nil {
		cancel()
	}
	s.freed() // there may also be a place for another session now
	s.mu.Unlock()
	taken, err = s.receive(ctx, p.source, 1, semantics.MaxWait)
	s.mu.Lock()
	p.isWaiting, p.interrupt = false, nil
	p.countIdle()
	if p.idle != nil {
		p.idle.Stop()
	}
	s.mu.Unlock()
	return taken, 1, err
}

// isIdle says whether the session has nothing to do. The caller holds the mutex.
func (p *sessionPump) isIdle() bool { return p.isWaiting && p.used == 1 && p.leaving == nil }

// countIdle keeps the count of those that have nothing to do. The caller holds the mutex and has changed what isIdle
// depends on.
func (p *sessionPump) countIdle() {
	if isIdle := p.isIdle(); isIdle != p.isCounted {
		p.isCounted = isIdle
		if isIdle {
			p.sub.idlers++
		} else {
			p.sub.idlers--
		}
	}
}

// armIdle lets the session be given up when it has had nothing to do for long enough. The caller holds the mutex.
func (p *sessionPump) armIdle() {
	left := p.sub.options.SessionIdle - time.Since(p.lastActive)
	switch {
	case !p.isIdle():
	case p.idle == nil:
		p.idle = time.AfterFunc(left, p.idleOut)
	default:
		p.idle.Reset(left)
	}
}

func (p *sessionPump) idleOut() {
	s := p.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.isIdle() && time.Since(p.lastActive) >= s.options.SessionIdle {
		p.leave(SessionIdle)
	}
}

// leave makes a pump give its session up. The caller holds the mutex.
func (p *sessionPump) leave(why SessionEnd) {
	if p.leaving == nil {
		p.leaving = &why
		p.sub.leavers++
		p.countIdle()
	}
	if p.interrupt != nil {
		p.interrupt()
	}
	loop.Poke(p.wake)
	loop.Poke(p.sub.place)
}

// lose notes that the lock has ended, and takes the messages under it off the books. One that is being given up finds
// out by itself whether the lock ended before. The caller holds the mutex.
func (p *sessionPump) lose() {
	p.leave(SessionLost)
	p.disown()
}

// disown takes the messages of the session off the books. The caller holds the mutex.
func (p *sessionPump) disown() {
	s := p.sub
	for token, d := range s.unsettled {
		if d.pump == p {
			if d.isTaken {
				s.gone.add(token)
			}
			s.drop(token)
		}
	}
	s.freed()
}

// mayYield says whether the session has kept its place long enough, and can give it up to another: nothing is in
// flight.
func (p *sessionPump) mayYield() bool {
	s := p.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.leaving == nil && p.used == 0 && time.Since(p.turn) >= sessionTurn && s.mayReplace() && !s.hasPlace()
}

// mayReplace says whether another session may come in the place of one that has nothing in flight: the client wants no
// fewer than it has, and there is a credit. The caller holds the mutex.
func (s *Subscription) mayReplace() bool {
	return len(s.sessions)-s.leavers <= s.places() && s.credits.free() > 0
}

// yield gives the place to a session that is ready, if there is one.
func (p *sessionPump) yield() {
	s := p.sub
	session, err := s.broker.Accept(s.life, s.source.Path, 0)
	s.mu.Lock()
	p.turn = time.Now()
	isNone := err != nil || session == nil
	isTooLate := p.successor != nil ||
		!s.mayReplace() // it was closed meanwhile, and another one has its place, or credits were taken back
	if !isNone && !isTooLate {
		next, _ := s.newPump(session)
		p.makeWayFor(next)
	}
	s.mu.Unlock()
	if !isNone && isTooLate {
		s.refuse(session)
	}
}

// makeWayFor gives the place to another session. The caller holds the mutex.
func (p *sessionPump) makeWayFor(next *sessionPump) {
	p.successor = next
	p.sub.sessions[next.session.Lock] = next
	p.leave(SessionYielded)
}

// end gives the session up, tells the client, and lets the successor begin.
func (p *sessionPump) end() {
	s := p.sub
	err := s.broker.CloseSession(
		context.WithoutCancel(s.life), p.source,
	) // what fails is made up for by the end of the lock
	s.mu.Lock()
	why := *p.leaving
	if semantics.CodeOf(err) == semantics.SessionLockLost {
		why = SessionLost
	}
	p.isClosed = true
	p.disown()
	s.mu.Unlock()
	if !s.tell(Event{SessionClosed: &ClosedSession{ID: p.session.ID, Lock: p.session.Lock, Why: why}}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, p.session.Lock)
	s.leavers--
	s.freed()
	if p.successor != nil {
		s.work.Go(p.successor.run)
	}
}
