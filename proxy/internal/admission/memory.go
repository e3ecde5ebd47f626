package admission

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

// A request takes more memory than its bytes: as it came, decoded, in the form in which it is stored, and on its way to
// the store.
const (
	jsonFactor  = 4
	protoFactor = 3
)

// smallRequest is up to which size requests are let in when the memory is used up, so that settlements and renewals go
// on: they have as much again for themselves.
const smallRequest = 64 << 10

// Bytes is the memory for requests and answers under way. It is safe for concurrent use.
type memoryBudget struct {
	limit         int64
	requestGauge  prometheus.Gauge
	responseGauge prometheus.Gauge

	mu        sync.Mutex
	requests  allocation
	responses int64
	refusedAt time.Time // the last answer for which there was none
}

// share is the memory that a request holds.
type allocation struct{ small, large int64 }

// take takes memory for a request and reports whether it was there. A request that is larger than all of it gets it
// when nothing else is held.
func (b *memoryBudget) acquire(s *allocation, n int64, isSmall bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, mine := &b.requests.large, &s.large
	if isSmall {
		held, mine = &b.requests.small, &s.small
	}
	if *held > *mine && *held+n > b.limit {
		return false
	}
	*held, *mine = *held+n, *mine+n
	b.requestGauge.Set(float64(b.requests.small + b.requests.large))
	return true
}

// give gives all of it back.
func (b *memoryBudget) release(s *allocation) {
	if *s == (allocation{}) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests.small, b.requests.large = b.requests.small-s.small, b.requests.large-s.large
	*s = allocation{}
	b.requestGauge.Set(float64(b.requests.small + b.requests.large))
}

// NoMemory is how a request fails for which there is no memory.
func errRequestMemory() *semantics.Error {
	e := semantics.Errorf(
		semantics.Throttled,
		"requests under way take all that --request-memory permits; send again later, or less at a time",
	)
	e.RetryAfter = time.Second
	return e
}
