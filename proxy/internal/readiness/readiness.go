// Package readiness answers whether the sidecar can serve: it looks at the store when somebody asks, and remembers for a
// moment what it saw.
package readiness

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// State is what the sidecar is up to.
type State string

// The states. Only Ready is ready.
const (
	Starting         State = "starting"          // the store was not seen fit yet
	Ready            State = "ready"             //
	Draining         State = "draining"          // no new receives; settlements and sends go on
	StoreUnavailable State = "store unavailable" // it was fit before
)

// Report is what probes show.
type Report struct {
	State    State    `json:"state"`
	Store    string   `json:"store,omitempty"`    // what the store is and where, once it was seen
	Warnings []string `json:"warnings,omitempty"` // what weakens its promises
	Reason   string   `json:"reason,omitempty"`   // why it is not ready
}

// How long one look at the store may take, and how long it is believed.
const (
	checkTimeout = time.Second
	checkMaxAge  = time.Second
)

// How long to wait between two looks while starting.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Readiness watches one store for one Broker. It is safe for concurrent use.
type Readiness struct {
	checker semantics.Checker
	broker  *semantics.Broker
	logger  *slog.Logger
	started chan struct{} // closed once the store was seen fit

	mu     sync.Mutex // held while looking, so that many who ask at once make one look
	report Report     // of the last look
	looked time.Time
}

// New makes a Readiness.
func New(checker semantics.Checker, broker *semantics.Broker, logger *slog.Logger) *Readiness {
	return &Readiness{
		checker: checker, broker: broker, logger: logger, started: make(chan struct{}),
		report: Report{State: Starting},
	}
}

// Started gives a channel that is closed once the store was seen fit to serve.
func (r *Readiness) Started() <-chan struct{} { return r.started }

// HasStarted reports whether the store was ever seen fit to serve.
func (r *Readiness) HasStarted() bool {
	select {
	case <-r.started:
		return true
	default:
		return false
	}
}

// Start looks at the store until it is fit, and returns nil then. It returns an error when the store is unfit in a way
// that somebody must mend (PRECONDITION_FAILED), and the cause when ctx ends. It must be called once.
func (r *Readiness) Start(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		r.mu.Lock()
		err := r.look(ctx)
		r.mu.Unlock()
		if err == nil {
			close(r.started)
			return nil
		}
		if semantics.CodeOf(err) == semantics.PreconditionFailed {
			return err
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return context.Cause(ctx)
		}
	}
}

// Report tells whether the sidecar is ready. It blocks for one look at the store, a second at most, unless the last one
// is younger than a second.
func (r *Readiness) Report(ctx context.Context) Report {
	r.mu.Lock()
	if r.HasStarted() && !r.broker.Draining() && time.Since(r.looked) >= checkMaxAge {
		_ = r.look(context.WithoutCancel(ctx)) // what it saw is in the report, for others too
	}
	report := r.report
	r.mu.Unlock()
	switch {
	case r.broker.Draining():
		report.State, report.Reason = Draining, "this sidecar is being stopped"
	case !r.HasStarted():
		report.State = Starting
	}
	return report
}

// look needs the lock. It logs when the answer is another one than last time.
func (r *Readiness) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	health, err := r.checker.Check(ctx)
	before := r.report
	r.looked = time.Now()
	if err == nil {
		r.report = Report{State: Ready, Store: health.Store, Warnings: health.Warnings}
		if before.State != Ready {
			r.logger.LogAttrs(ctx, slog.LevelInfo, "the store can serve",
				slog.String("store", health.Store), slog.Any("warnings", health.Warnings))
		}
		return nil
	}
	r.report.State, r.report.Reason = StoreUnavailable, semantics.AsError(err).Message
	if r.report.Reason != before.Reason {
		r.logger.LogAttrs(ctx, slog.LevelWarn, "the store cannot serve", slog.Any("error", err))
	}
	return err
}
