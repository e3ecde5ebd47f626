package stream

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// sessionPump takes the messages of one session that a subscription holds.
type sessionPump struct {
	*account.Session

	sub    *Subscription
	source semantics.Source
}

// begin starts the pump of a session.
func (s *Subscription) begin(session *account.Session) {
	s.work.Go((&sessionPump{Session: session, sub: s, source: s.Source(session.Lock)}).run)
}

// run takes the messages of the session until its end.
func (p *sessionPump) run() {
	s := p.sub
	if !s.tell(Event{SessionOpened: p.Session.Session}) {
		return // the subscription's end closes it
	}
	p.Opened()
	p.pump()
	for taken := p.NextTaken(); taken != nil; taken = p.NextTaken() {
		s.giveUp(s.life, Event{Delivery: taken})
	}
	if s.life.Err() == nil {
		p.end()
	}
}

// pump takes messages until the session is to be given up, or the subscription ends.
func (p *sessionPump) pump() {
	s, pause := p.sub, loop.FirstPause
	for {
		n, isOver := p.awaitCredits()
		if isOver {
			return
		}
		taken, n, err := p.receive(n)
		if err == nil {
			pause = loop.FirstPause
			s.troubled.Store(false)
			s.deliver(p.Session, taken, n)
			continue
		}
		s.account.Unuse(p.Session, n)
		if semantics.CodeOf(err) == semantics.SessionLockLost {
			p.Lose()
		} else if !s.survives(err, &pause, p.Changed) {
			return
		}
	}
}

// awaitCredits waits until one more message may be in flight and takes credits. Meanwhile it hands on what comes with
// the completion of others. isOver reports that the session is to be closed, or that the subscription ends.
func (p *sessionPump) awaitCredits() (n int, isOver bool) {
	s := p.sub
	for s.life.Err() == nil {
		if taken := p.NextTaken(); taken != nil {
			s.handOver(taken)
			continue
		}
		if p.MayYield() {
			p.yield()
		}
		isDraining := s.isDraining()
		n, until, isOver := p.Use(isDraining)
		if n > 0 || isOver {
			return n, isOver
		}
		p.await(isDraining, until)
	}
	return 0, true
}

func (p *sessionPump) await(isDraining bool, until time.Time) {
	var instant <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		instant = timer.C
	}
	p.sub.pass(p.Changed, isDraining, instant)
}

// receive takes up to n messages, for which credits are used, or waits for one, for which it keeps one credit. It
// returns how many are used then.
func (p *sessionPump) receive(n int) (*delivery.Delivery, int, error) {
	s := p.sub
	if !p.WasEmpty() { // else a turn has just looked
		taken, err := s.receive(s.life, p.source, n, 0)
		if err != nil || len(taken.Tokens()) > 0 {
			return taken, n, err
		}
	}
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	p.Waiting(n, cancel)
	defer p.Waited()
	taken, err := s.receive(ctx, p.source, 1, semantics.MaxWait)
	return taken, 1, err
}

// yield passes the place to a session that is ready, if there is one.
func (p *sessionPump) yield() {
	s := p.sub
	accepted, err := s.broker.Accept(s.life, s.source.Path, 0)
	if err != nil {
		accepted = nil
	}
	if p.Yield(accepted) {
		s.refuse(accepted)
	}
}

// end releases the session, notifies the client, and starts the session that gets its place.
func (p *sessionPump) end() {
	s := p.sub
	// If that fails, the lock expires.
	err := s.broker.CloseSession(context.WithoutCancel(s.life), p.source)
	why := p.Closed(semantics.CodeOf(err) == semantics.SessionLockLost)
	if !s.tell(Event{SessionClosed: &ClosedSession{ID: p.ID, Lock: p.Lock, Why: why}}) {
		return
	}
	if successor := p.Remove(); successor != nil {
		s.begin(successor)
	}
}
