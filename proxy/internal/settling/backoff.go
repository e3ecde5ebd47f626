package settling

import (
	"math/rand/v2"
	"time"
)

// Bounds of a pause after a failure.
const (
	MinBackoff = 200 * time.Millisecond
	MaxBackoff = 10 * time.Second
)

// Backoff computes the pause before each attempt: twice the last one, with jitter, so that many sidecars do not retry
// at the same time.
type Backoff struct{ last time.Duration }

// Next returns the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, MinBackoff), MaxBackoff)
	return b.last/2 + rand.N(b.last/2) //nolint:gosec // no secret
}
