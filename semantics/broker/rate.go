package broker

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// What calls cost, in credits (QUOTA-10). A send or a settlement costs one credit per message or token. A call whose
// size is known only at its end must afford one credit, and what it took is charged afterwards: a receive or a peek
// pays for the first message beforehand, and a removal pays one credit on top for the search.
const (
	callCost       = 1
	managementCost = 10
)

// maxDebt bounds how long a Broker may be shut after one huge call, such as a purge of millions.
const maxDebt = time.Hour

// Option changes how New makes a Broker.
type Option func(*Broker)

// WithRateLimit lets the calls of clients spend so many credits a second, and at most one second's worth, or one
// credit, at once (QUOTA-10). A call that cannot pay is THROTTLED, does nothing and costs nothing; RetryAfter is the
// exact time until there is enough for it (THR-1, THR-2). A call that costs more than fits in is let through when
// nothing is spent, and later ones wait until its debt is paid, at most an hour. What the Broker does on its own
// account is free. 0 or less means no limit, which is also the default.
func WithRateLimit(creditsPerSecond float64) Option {
	return func(b *Broker) {
		b.rate = nil
		if creditsPerSecond > 0 {
			b.rate = &bucket{rate: creditsPerSecond, size: max(creditsPerSecond, 1)}
		}
	}
}

// bucket is a token bucket. It keeps the instant at which it is full again instead of a level, so that nothing has to
// fill it and the time until there is enough is a difference of instants.
type bucket struct {
	rate float64 // credits per second
	size float64 // credits when full

	mu     sync.Mutex
	fullAt time.Time
}

// take takes cost credits, or none and returns how long it is until there are enough.
func (b *bucket) take(cost int) (wait time.Duration) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := max(b.fullAt.Sub(now), 0)
	spare := b.timeFor(b.size - min(float64(cost), b.size))
	if wait = missing - spare; wait > 0 {
		return wait
	}
	b.spend(now, cost)
	return 0
}

// charge takes cost credits whether they are there or not.
func (b *bucket) charge(cost int) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spend(now, cost)
}

func (b *bucket) spend(now time.Time, cost int) {
	if b.fullAt.Before(now) {
		b.fullAt = now
	}
	b.fullAt = b.fullAt.Add(b.timeFor(float64(cost)))
	if most := now.Add(b.timeFor(b.size) + maxDebt); b.fullAt.After(most) {
		b.fullAt = most
	}
}

// timeFor is how long it takes until so many credits come in. It rounds down, so that single credits never add up to
// more than their sum and a full bucket holds all of its size.
func (b *bucket) timeFor(credits float64) time.Duration {
	const enough = float64(1000 * time.Hour) // far from the end of Duration, and beyond all that is asked for
	return time.Duration(math.Min(credits/b.rate*float64(time.Second), enough))
}

// admit takes the credits of a call that a client asked for, or fails with THROTTLED (THR-1). It comes after the checks
// of arguments (ERR-5) and before anything is done (THR-2).
func (b *Broker) admit(cost int) error {
	if b.rate == nil {
		return nil
	}
	wait := b.rate.take(cost)
	if wait == 0 {
		return nil
	}
	limit := strconv.FormatFloat(b.rate.rate, 'g', -1, 64)
	e := semantics.Errorf(semantics.Throttled,
		"the rate limit of %s credits a second is used up; the call costs %d, try again in %s", limit, cost, wait).
		With(semantics.DetailLimit, limit)
	e.RetryAfter = wait
	return e
}

// charge takes credits for what an admitted call has handed out or moved.
func (b *Broker) charge(messages int) {
	if b.rate != nil && messages > 0 {
		b.rate.charge(messages)
	}
}
