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

// acquireResponse allocates n bytes for a response, adds them to held, and reports whether the budget permitted it.
// With must it always succeeds. With n = 0 it only checks.
func (b *memoryBudget) acquireResponse(held *int64, n int64, must bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !must && b.responses >= b.limit {
		b.refusedAt = time.Now()
		return false
	}
	b.addResponse(held, n)
	return true
}

// releaseResponse frees n bytes, at most what is held.
func (b *memoryBudget) releaseResponse(held *int64, n int64) {
	if n = min(n, *held); n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addResponse(held, -n)
}

// addResponse adds n bytes to what responses hold, while the mutex is locked.
func (b *memoryBudget) addResponse(held *int64, n int64) {
	*held, b.responses = *held+n, b.responses+n
	b.responseGauge.Set(float64(b.responses))
}

// refusedWithin reports whether a response was refused within the last period.
func (b *memoryBudget) refusedWithin(period time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.refusedAt.IsZero() && time.Since(b.refusedAt) < period
}

// RequestMemoryUsed is the error of a request that was refused for lack of memory.
func RequestMemoryUsed() *semantics.Error {
	e := semantics.Errorf(
		semantics.Throttled, "requests in flight use all of --request-memory; retry later, or send less at a time",
	)
	e.RetryAfter = time.Second
	return e
}

// Request is the memory of a request that arrives in pieces over a wire which this package does not read.
type Request struct {
	controller *Controller
	size       int64
	allocated  allocation
}

// NewRequest returns the memory of a request of which nothing has arrived.
func (ctl *Controller) NewRequest() *Request { return &Request{controller: ctl} }

// Grow allocates memory for n bytes of the request more, and reports whether it was available. If not, the request is
// to be refused with RequestMemoryUsed.
func (r *Request) Grow(n int) bool {
	r.size += int64(n)
	isAvailable := r.controller.memory.acquire(&r.allocated, int64(n)*protoFactor, r.size <= smallRequest)
	if !isAvailable {
		r.controller.requestRefused()
	}
	return isAvailable
}

// Free releases the memory.
func (r *Request) Free() { r.controller.memory.release(&r.allocated) }
