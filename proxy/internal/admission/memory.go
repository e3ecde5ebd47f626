package admission

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

// A request occupies several times its size: as received, decoded, encoded for the store, and in the buffer to the
// store. The factors are estimates of the sum.
const (
	jsonFactor  = 4
	protoFactor = 3
)

// smallRequest is the size up to which requests are accepted when the memory is used up, so that settlements and
// renewals succeed. Small requests have a budget of the same size for themselves.
const smallRequest = 64 << 10

// memoryBudget is the memory for requests and responses in flight. It is safe for concurrent use.
type memoryBudget struct {
	limit         int64
	requestGauge  prometheus.Gauge
	responseGauge prometheus.Gauge

	mu        sync.Mutex
	requests  allocation
	responses int64
	refusedAt time.Time // when a response was refused last
}

// allocation is the memory of one request.
type allocation struct{ small, large int64 }

// acquire allocates n bytes for a request and reports whether they were available. If nothing else is allocated, it
// succeeds for any n.
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

// release frees all memory of a request.
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

// errRequestMemory is the error of a request that was refused for lack of memory.
func errRequestMemory() *semantics.Error {
	e := semantics.Errorf(
		semantics.Throttled,
		"requests in flight use all of --request-memory; retry later, or send less at a time",
	)
	e.RetryAfter = time.Second
	return e
}
