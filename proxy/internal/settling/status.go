package settling

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

// HealthyAfter is how long a subscription must last to count as working.
const HealthyAfter = 5 * time.Second

// SourceStatus tracks whether a source can be received from, and logs when that changes. Its methods may be called
// concurrently.
type SourceStatus struct {
	logger  *slog.Logger
	stalled prometheus.Gauge // counts the sources that cannot be received from; nil: no metric

	mu        sync.Mutex
	reported  semantics.Code // code in the last log line; empty: none
	isStalled bool
	pause     Backoff
}

// NewSourceStatus returns the status of a source that works. stalled may be nil.
func NewSourceStatus(logger *slog.Logger, stalled prometheus.Gauge) *SourceStatus {
	return &SourceStatus{logger: logger, stalled: stalled}
}

// Failed notes that a subscription failed, and returns how long to wait before the next one. It logs each code once.
func (t *SourceStatus) Failed(err error) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setStalled(true)
	if code := semantics.CodeOf(err); code != t.reported {
		t.logger.Warn("the source cannot be received from; retrying until it can", "error", err)
		t.reported = code
	}
	return t.pause.Next()
}

// Received notes that the source can be received from.
func (t *SourceStatus) Received() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setWorking()
}

// Subscribed notes a new subscription. If it lasts for HealthyAfter, until stop is called, the source works and the
// next pause is short again: a subscription that cannot receive fails sooner.
func (t *SourceStatus) Subscribed() (stop func()) {
	healthy := time.AfterFunc(HealthyAfter, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.setWorking()
		t.pause = Backoff{}
	})
	return func() { healthy.Stop() }
}

// Ended notes that nothing receives from the source any more.
func (t *SourceStatus) Ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setStalled(false)
}

func (t *SourceStatus) setWorking() {
	t.setStalled(false)
	if t.reported != "" {
		t.logger.Info("the source can be received from again")
		t.reported = ""
	}
}

// setStalled updates the metric.
func (t *SourceStatus) setStalled(isStalled bool) {
	if t.stalled != nil && isStalled != t.isStalled {
		if isStalled {
			t.stalled.Inc()
		} else {
			t.stalled.Dec()
		}
	}
	t.isStalled = isStalled
}
