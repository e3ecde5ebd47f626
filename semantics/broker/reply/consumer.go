package reply

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

const (
	// idleReplies is how long a Broker keeps its session in a reply queue after the last request.
	idleReplies = time.Minute
	// repliesTogether is the most replies of one look.
	repliesTogether = 100
)

// consumer receives what comes into this Broker's session of one reply queue and passes each reply to the call that
// waits for it.
type consumer struct {
	requests *Requests
	path     string
	idle     chan struct{} // buffer of one: the last unsettled reply was settled
	failed   chan struct{} // buffer of one: there is something in unsettled

	mu         sync.Mutex
	ready      chan struct{}    // closed while the session is held, and then another one
	calls      map[string]*call // by the correlation id of the reply
	delivering int              // replies given to calls, neither completed nor given back
	lastUse    time.Time        // when the last call left or had its reply settled
	unsettled  []*settlement    // that failed, oldest first
}

// run holds the session as long as requests wait, and for idleReplies after that.
func (c *consumer) run(ctx context.Context) {
	pause := loop.FirstPause
	ctx = semantics.WithMemory(semantics.WithWaits(ctx, nil), nil) // those of the call that began it end before it does
	for {
		source, lockFor, err := c.open(ctx)
		if err == nil {
			pause = loop.FirstPause
			err = c.serve(ctx, source, lockFor)
			c.close(ctx, source)
		}
		if c.ends(err) {
			return
		}
		if err != nil {
			c.rest(ctx, pause)
			pause = min(2*pause, loop.LastPause)
		}
	}
}

// open takes the session. When another process still seems to hold it, which is a call of ours whose answer was lost,
// it waits.
func (c *consumer) open(ctx context.Context) (source semantics.Source, lockFor time.Duration, err error) {
	b := c.requests.broker
	queue, err := b.Entity(ctx, c.path)
	if err != nil {
		return source, 0, err
	}
	source, err = b.Accept(ctx, c.path, c.requests.session, semantics.MaxAcceptWait)
	if err != nil {
		return source, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.ready)
	return source, queue.Options.LockDuration, nil
}

// serve receives from the held session. It ends with nil when no request needs it any more, the Broker drains or the
// lock is lost, and with a failure that does not pass.
func (c *consumer) serve(ctx context.Context, source semantics.Source, lockFor time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		defer cancel()
		c.keepLock(ctx, source, lockFor)
	})
	work.Go(func() { c.settleAgain(ctx) })
	defer func() { cancel(); work.Wait() }()
	b, pause := c.requests.broker, loop.FirstPause
	for {
		wait := c.neededFor()
		if wait <= 0 || c.requests.isDraining() {
			return nil
		}
		messages, err := b.Take(ctx, source, repliesTogether, wait)
		switch code := semantics.CodeOf(err); {
		case err == nil:
			pause = loop.FirstPause
			c.dispatch(ctx, source, messages)
		case code == semantics.SessionLockLost || ctx.Err() != nil:
			return nil
		case !code.Retryable():
			return err
		default:
			c.rest(ctx, pause)
			pause = min(2*pause, loop.LastPause)
		}
	}
}

// keepLock renews the session's lock until ctx ends or the lock is lost.
func (c *consumer) keepLock(ctx context.Context, source semantics.Source, lockFor time.Duration) {
	b := c.requests.broker
	for {
		timer := time.NewTimer(lockFor / 3)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if queue, err := b.Entity(ctx, c.path); err == nil {
			lockFor = queue.Options.LockDuration
		}
		// What fails otherwise is tried again in time; a lock that is lost meanwhile is found by then.
		if semantics.CodeOf(b.RenewSession(ctx, source)) == semantics.SessionLockLost {
			return
		}
	}
}

// neededFor returns how long the session is needed at least. If it is not needed, requests from now on wait until it is
// held again.
func (c *consumer) neededFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls)+c.delivering > 0 {
		return idleReplies
	}
	left := idleReplies - time.Since(c.lastUse)
	if left <= 0 {
		c.unreadyLocked()
	}
	return left
}

// unreadyLocked makes requests from now on wait until the session is held again.
func (c *consumer) unreadyLocked() {
	select {
	case <-c.ready:
		c.ready = make(chan struct{})
	default: // it is already
	}
}

// dispatch passes replies to the calls that wait for them and completes the others.
func (c *consumer) dispatch(ctx context.Context, source semantics.Source, messages []*semantics.Received) {
	b := c.requests.broker
	var orphans []semantics.LockToken
	c.mu.Lock()
	for _, m := range messages {
		a := c.calls[m.CorrelationID]
		if a == nil {
			orphans = append(orphans, m.LockToken)
			continue
		}
		delete(c.calls, a.key)
		c.delivering++
		taken := b.Deliver(ctx, source, m)
		taken.OnEnd(func(verb semantics.Settlement, err error) {
			c.settled(&settlement{source: source, tokens: taken.Tokens(), verb: verb}, err)
		})
		a.outcome <- outcome{delivery: taken}
	}
	c.mu.Unlock()
	if len(orphans) == 0 {
		return
	}
	done := &settlement{source: source, tokens: orphans, verb: b.Complete, isOfOrphans: true}
	if err := c.settle(ctx, done); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keepLocked(done)
	}
}

// settled notes that a reply was completed or given back, or that this failed.
func (c *consumer) settled(done *settlement, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivering--
	c.lastUse = time.Now()
	if err != nil {
		c.keepLocked(done)
	}
	if c.delivering == 0 {
		loop.Poke(c.idle)
	}
}

// removeLocked takes an call out.
func (c *consumer) removeLocked(a *call) {
	delete(c.calls, a.key)
	c.lastUse = time.Now()
}

// close closes the session, if it is not lost. A drain lets unsettled replies be settled first, if that does not take
// long.
func (c *consumer) close(ctx context.Context, source semantics.Source) {
	c.mu.Lock()
	c.unreadyLocked()
	c.mu.Unlock()
	b := c.requests.broker
	if c.requests.isDraining() {
		c.awaitSettled()
	}
	b.CloseSession(ctx, source)
}

func (c *consumer) awaitSettled() {
	enough := time.NewTimer(delivery.SettleTimeout)
	defer enough.Stop()
	for {
		c.mu.Lock()
		delivering := c.delivering
		c.mu.Unlock()
		if delivering == 0 {
			return
		}
		select {
		case <-c.idle:
		case <-enough.C:
			return
		}
	}
}

// ends reports whether the consumer is closed after err, which is nil when the session was given up or lost, and fails
// requests that cannot be answered: all if err does not pass, otherwise those that were not sent.
func (c *consumer) ends(err error) bool {
	r := c.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	drains := r.draining()
	if drains != nil {
		err = drains
	}
	for _, a := range c.calls {
		if err != nil && (!a.isSent || drains != nil || !semantics.CodeOf(err).Retryable()) {
			c.removeLocked(a)
			a.outcome <- outcome{err: err}
		}
	}
	if len(c.calls) > 0 {
		return false
	}
	delete(r.consumers, semantics.Fold(c.path))
	return true
}

// rest waits, at most until the Broker drains.
func (c *consumer) rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.requests.broker.Draining():
	case <-ctx.Done():
	}
}
