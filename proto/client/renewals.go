package client

import (
	"context"
	"sync"
	"time"
)

const (
	// A lock is renewed when a third of its time has passed, as far as the clocks of client and Redis agree. These
	// bounds keep a difference between them from doing harm: the shortest lock lasts 5 s (LOCK-1).
	soonestRenewal = time.Second
	latestRenewal  = 20 * time.Second

	maxRenewed = 500 // locks of one call (LOCK-5)
)

// renewals keeps locks from expiring until their messages are settled, for at most as long as the receiver says. One
// goroutine works while there are locks. A nil *renewals does nothing.
type renewals struct {
	life   *lifetime
	atMost time.Duration // after the message was received
	// renew returns the new ends of the locks that still hold. An error is that of the call; it may be made again.
	renew func(ctx context.Context, tokens []string) (map[string]time.Time, error)

	mu     sync.Mutex
	locks  map[string]*renewal // by token
	isBusy bool                // the goroutine works
	more   chan struct{}       // has one when a lock was added
}

type renewal struct{ next, end time.Time }

func newRenewals(
	life *lifetime, atMost time.Duration,
	renew func(ctx context.Context, tokens []string) (map[string]time.Time, error),
) *renewals {
	return &renewals{
		life:   life,
		atMost: atMost,
		renew:  renew,
		locks:  map[string]*renewal{},
		more:   make(chan struct{}, 1),
	}
}

// add begins to renew the locks of messages that were just received.
func (r *renewals) add(messages []*ReceivedMessage) {
	if r == nil {
		return
	}
	for _, m := range messages {
		if m.LockToken != "" && m.LockedUntil != nil {
			r.addLock(m.LockToken, *m.LockedUntil)
		}
	}
}

func (r *renewals) addLock(token string, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.locks[token] = &renewal{next: now.Add(untilRenewal(now, until)), end: now.Add(r.atMost)}
	if !r.isBusy && r.life.client.begin() {
		r.isBusy = true
		go func() {
			defer r.life.client.work.Done()
			r.run()
		}()
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// untilRenewal returns after how long a lock has to be renewed.
func untilRenewal(now, until time.Time) time.Duration {
	return min(max(until.Sub(now)/3, soonestRenewal), latestRenewal)
}

// remove renews a lock no longer.
func (r *renewals) remove(token string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.locks, token)
}

// run renews until there are no locks or the receiver is closed.
func (r *renewals) run() {
	for {
		due, wait, isOver := r.due()
		if isOver {
			return
		}
		if len(due) > 0 {
			r.renewDue(due)
			continue
		}
		select {
		case <-time.After(wait):
		case <-r.more:
		case <-r.life.ctx.Done():
		}
	}
}

// due returns the locks to renew now, or else how long to wait. isOver reports whether there is nothing left to do;
// then the next lock starts another goroutine.
func (r *renewals) due() (tokens []string, wait time.Duration, isOver bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	wait = latestRenewal
	for token, lock := range r.locks {
		switch {
		case now.After(lock.end):
			delete(r.locks, token)
		case !now.Before(lock.next):
			if len(tokens) < maxRenewed {
				tokens = append(tokens, token)
			}
		default:
			wait = min(wait, lock.next.Sub(now))
		}
	}
	if len(r.locks) == 0 || r.life.ctx.Err() != nil {
		r.isBusy = false
		return nil, 0, true
	}
	return tokens, wait, false
}

func (r *renewals) renewDue(tokens []string) {
	ctx, cancel := context.WithTimeout(r.life.ctx, latestRenewal)
	defer cancel()
	ends, err := r.renew(ctx, tokens)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, token := range tokens {
		lock := r.locks[token]
		until, holds := ends[token]
		switch {
		case lock == nil: // settled meanwhile
		case holds:
			lock.next = now.Add(untilRenewal(now, until))
		case err != nil:
			lock.next = now.Add(soonestRenewal)
		default: // lost: the settlement will say so
			delete(r.locks, token)
		}
	}
}
