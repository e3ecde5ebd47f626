package semantics

import (
	"context"
	"sync"
	"time"
)

const (
	// idleReplies is how long a Broker keeps its session in a reply queue after the last request.
	idleReplies = time.Minute
	// repliesTogether is the most replies of one look.
	repliesTogether = 100
)

// replyDesk receives what comes into this Broker's session of one reply queue and gives each reply to who asked for it.
type replyDesk struct {
	requests *requests
	path     string
	idle     chan struct{} // has room for one: the last reply in hand was settled
	failed   chan struct{} // has room for one: there is something in unsettled

	// Under the mutex of requests.
	ready     chan struct{}      // closed while the session is held, and then another one
	askers    map[string]*asker  // by the correlation id of the reply
	inHand    int                // replies given to askers, neither completed nor given back
	lastUse   time.Time          // when the last asker left or had its reply settled
	unsettled []*replySettlement // that failed, oldest first
}

// run holds the session for as long as somebody asks, and for idleReplies after that.
func (d *replyDesk) run(ctx context.Context) {
	pause := firstPause
	for {
		source, lockFor, err := d.open(ctx)
		if err == nil {
			pause = firstPause
			err = d.serve(ctx, source, lockFor)
			d.close(ctx, source)
		}
		if d.ends(err) {
			return
		}
		if err != nil {
			d.rest(ctx, pause)
			pause = min(2*pause, lastPause)
		}
	}
}

// open takes the session. When another process still seems to hold it, which is a call of ours whose answer was lost, it waits.
func (d *replyDesk) open(ctx context.Context) (source Source, lockFor time.Duration, err error) {
	b := d.requests.broker
	queue, err := b.getSource(ctx, d.path)
	if err != nil {
		return source, 0, err
	}
	session, err := b.acceptOrWait(ctx, d.path, AcceptOptions{SessionID: d.requests.session, MaxWait: MaxAcceptWait})
	if err != nil {
		return source, 0, err
	}
	source = Source{Path: d.path, SessionLock: session.Lock}
	b.held.addSession(source, session.LockedUntil)
	d.requests.mu.Lock()
	defer d.requests.mu.Unlock()
	close(d.ready)
	return source, queue.Options.LockDuration, nil
}

// serve receives from the held session. It ends with nil when nobody needs it any more, the Broker drains or the lock is lost, and
// with a failure that does not pass.
func (d *replyDesk) serve(ctx context.Context, source Source, lockFor time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		defer cancel()
		d.keepLock(ctx, source, lockFor)
	})
	work.Go(func() { d.settleAgain(ctx) })
	defer func() { cancel(); work.Wait() }()
	b, pause := d.requests.broker, firstPause
	for {
		wait := d.neededFor()
		if wait <= 0 || b.Draining() {
			return nil
		}
		messages, err := b.receiveOrWait(ctx, source, ReceiveOptions{MaxMessages: repliesTogether, MaxWait: wait})
		switch code := CodeOf(err); {
		case err == nil:
			pause = firstPause
			d.handOut(ctx, source, messages)
		case code == SessionLockLost || ctx.Err() != nil:
			return nil
		case !code.Retryable():
			return err
		default:
			d.rest(ctx, pause)
			pause = min(2*pause, lastPause)
		}
	}
}

// keepLock renews the session's lock until ctx ends or the lock is lost.
func (d *replyDesk) keepLock(ctx context.Context, source Source, lockFor time.Duration) {
	b := d.requests.broker
	for {
		timer := time.NewTimer(lockFor / 3)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if queue, err := b.getSource(ctx, d.path); err == nil {
			lockFor = queue.Options.LockDuration
		}
		until, err := b.store.RenewSessionLock(ctx, source)
		switch CodeOf(err) {
		case "":
			b.held.renewSession(source, until)
		case SessionLockLost:
			b.sessionFailed(source, err)
			return
		default: // tried again in time; a lock that is lost meanwhile is found by then
		}
	}
}

// neededFor tells how long the session is needed at least. When it is not, whoever asks from now on waits until it is held again.
func (d *replyDesk) neededFor() time.Duration {
	d.requests.mu.Lock()
	defer d.requests.mu.Unlock()
	if len(d.askers)+d.inHand > 0 {
		return idleReplies
	}
	left := idleReplies - time.Since(d.lastUse)
	if left <= 0 {
		d.unready()
	}
	return left
}

// unready makes whoever asks from now on wait until the session is held again. The caller holds the mutex.
func (d *replyDesk) unready() {
	select {
	case <-d.ready:
		d.ready = make(chan struct{})
	default: // it is already
	}
}

// handOut gives replies to those who wait for them and completes the others.
func (d *replyDesk) handOut(ctx context.Context, source Source, messages []*Received) {
	b := d.requests.broker
	var orphans []LockToken
	d.requests.mu.Lock()
	for _, m := range messages {
		a := d.askers[m.CorrelationID]
		if a == nil {
			orphans = append(orphans, m.LockToken)
			continue
		}
		delete(d.askers, a.key)
		d.inHand++
		b.charge(callCost)
		delivery := b.deliver(source, ReceiveAndDelete, []*Received{m})
		delivery.ended = func(verb Settlement, err error) {
			d.settled(&replySettlement{source: source, tokens: delivery.tokens, verb: verb}, err)
		}
		a.outcome <- outcome{delivery: delivery}
	}
	d.requests.mu.Unlock()
	if len(orphans) == 0 {
		return
	}
	done := &replySettlement{source: source, tokens: orphans, verb: b.store.Complete, isOfOrphans: true}
	if err := d.settle(ctx, done); err != nil {
		d.requests.mu.Lock()
		defer d.requests.mu.Unlock()
		d.keep(done)
	}
}

// settled notes that a reply was completed or given back, or that this failed.
func (d *replyDesk) settled(done *replySettlement, err error) {
	d.requests.mu.Lock()
	defer d.requests.mu.Unlock()
	d.inHand--
	d.lastUse = time.Now()
	if err != nil {
		d.keep(done)
	}
	if d.inHand == 0 {
		poke(d.idle)
	}
}

// remove takes an asker out. The caller holds the mutex.
func (d *replyDesk) remove(a *asker) {
	delete(d.askers, a.key)
	d.lastUse = time.Now()
}

// close gives the session up, if it is not lost. A drain lets the replies in hand be settled first, if that does not take long.
func (d *replyDesk) close(ctx context.Context, source Source) {
	d.requests.mu.Lock()
	d.unready()
	d.requests.mu.Unlock()
	b := d.requests.broker
	if b.Draining() {
		d.awaitSettled()
	}
	if err := b.closeSession(ctx, source); err != nil {
		b.held.removeSession(source) // it is free when its lock ends
	}
}

func (d *replyDesk) awaitSettled() {
	enough := time.NewTimer(settleTimeout)
	defer enough.Stop()
	for {
		d.requests.mu.Lock()
		inHand := d.inHand
		d.requests.mu.Unlock()
		if inHand == 0 {
			return
		}
		select {
		case <-d.idle:
		case <-enough.C:
			return
		}
	}
}

// ends tells whether the desk is closed after err, which is nil when the session was given up or lost, and fails those who wait and
// have nothing to wait for: all when it does not pass, else those who have not sent their request.
func (d *replyDesk) ends(err error) bool {
	r := d.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	drains := r.broker.refuseIfDraining()
	if drains != nil {
		err = drains
	}
	for _, a := range d.askers {
		if err != nil && (!a.isSent || drains != nil || !CodeOf(err).Retryable()) {
			d.remove(a)
			a.outcome <- outcome{err: err}
		}
	}
	if len(d.askers) > 0 {
		return false
	}
	delete(r.desks, Fold(d.path))
	return true
}

// rest waits, at most until the Broker drains.
func (d *replyDesk) rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.requests.broker.draining:
	case <-ctx.Done():
	}
}
