package dapr

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

// sourceStatus tracks whether a stream can receive. Its methods may be called concurrently.
type sourceStatus struct {
	logger  *slog.Logger
	stalled prometheus.Gauge // counts the streams that cannot

	mu        sync.Mutex
	reported  semantics.Code // code in the last log line; empty: none
	isStalled bool
}

// failed notes that receiving failed. It logs each code once.
func (t *sourceStatus) failed(ctx context.Context, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setStalled(true)
	if code := semantics.CodeOf(err); code != t.reported {
		t.reported = code
		t.logger.WarnContext(
			ctx, "the Dapr subscription cannot receive; retrying until it can", "error", err,
		)
	}
}

// recovered notes that receiving works.
func (t *sourceStatus) recovered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setStalled(false)
	if t.reported != "" {
		t.reported = ""
		t.logger.Info("the Dapr subscription receives again")
	}
}

// ended stops counting the stream.
func (t *sourceStatus) ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setStalled(false)
}

// setStalled updates the count of streams that cannot receive. It runs while the mutex is locked.
func (t *sourceStatus) setStalled(isStalled bool) {
	switch {
	case isStalled && !t.isStalled:
		t.stalled.Inc()
	case !isStalled && t.isStalled:
		t.stalled.Dec()
	}
	t.isStalled = isStalled
}
