// Package readiness reports whether the sidecar can serve. It checks the store periodically, for probes, and after
// failed calls, caches the result briefly, and logs outages.
package readiness

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// State is the state of the sidecar.
type State string

// States of the sidecar. Only Ready is ready.
const (
	Starting         State = "starting"          // the store has not been available yet
	Ready            State = "ready"             //
	Draining         State = "draining"          // new receives are refused; settlements and sends continue
	StoreUnavailable State = "store unavailable" // after it was available
)

// Report is the JSON body of probes.
type Report struct {
	State    State    `json:"state"`
	Store    string   `json:"store,omitempty"`    // kind and address of the store, once known
	Warnings []string `json:"warnings,omitempty"` // settings of the store that weaken its guarantees
	Reason   string   `json:"reason,omitempty"`   // why it is not ready
	Cause    string   `json:"cause,omitempty"`    // the reason as a code
	Since    string   `json:"since,omitempty"`    // start of the outage, RFC 3339
}

// Timeout of one check, and how long its result is used.
const (
	checkTimeout = time.Second
	checkMaxAge  = time.Second
)

// Pauses between checks while starting.
const (
	minStartPause = 50 * time.Millisecond
	maxStartPause = time.Second
)

// Intervals of Watch while the store is available and while it is not, the delay of a check after a failed call, and
// the interval of log lines during an outage.
const (
	upInterval   = 5 * time.Second
	downInterval = time.Second
	recheckDelay = 100 * time.Millisecond
	logInterval  = 30 * time.Second
)

// slowGrace is how long checks may time out before the store counts as unavailable. Large replies on all connections
// have the same effect for a while.
const slowGrace = 10 * time.Second

// Readiness checks one store for one Broker. It is safe for concurrent use.
type Readiness struct {
	checker semantics.Checker
	broker  *broker.Broker
	logger  *slog.Logger
	started chan struct{} // closed when the store was available for the first time
	recheck chan struct{} // capacity 1: a call has failed
	isUp    atomic.Bool   // the last check succeeded

	mu        sync.Mutex // held during a check, so that concurrent callers share one
	report    Report     // of the last check
	checkedAt time.Time
	slowSince time.Time // since when checks have timed out; zero: the last one has not
	outage    outage
}

// New returns a Readiness.
func New(checker semantics.Checker, broker *broker.Broker, logger *slog.Logger) *Readiness {
	return &Readiness{
		checker: checker, broker: broker, logger: logger, started: make(chan struct{}), recheck: make(chan struct{}, 1),
		report: Report{State: Starting},
	}
}

// Started returns a channel that is closed when the store was available for the first time.
func (r *Readiness) Started() <-chan struct{} { return r.started }

// HasStarted reports whether the store has ever been available.
func (r *Readiness) HasStarted() bool {
	select {
	case <-r.started:
		return true
	default:
		return false
	}
}

// Start checks the store until it is available, and then returns nil. It returns an error if the store needs a repair
// (PRECONDITION_FAILED), and the cause when ctx ends. It must be called once.
func (r *Readiness) Start(ctx context.Context) error {
	for pause := minStartPause; ; pause = min(2*pause, maxStartPause) {
		r.mu.Lock()
		err := r.check(ctx)
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

// CheckSoon makes Watch check the store soon. It does not block.
func (r *Readiness) CheckSoon() {
	select {
	case r.recheck <- struct{}{}:
	default:
	}
}

// Watch checks the store until ctx ends, so that outages are logged when they start.
func (r *Readiness) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		pause, doubts := upInterval, r.recheck
		if r.isDown() {
			pause, doubts = downInterval, nil // the outage is known
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-doubts:
			next.Reset(recheckDelay)
			select {
			case <-next.C:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		next.Stop()
		r.mu.Lock()
		if ctx.Err() == nil {
			_ = r.check(ctx) // the result is in the report
		}
		r.mu.Unlock()
	}
}

// StoreUp reports whether the last check succeeded. It does not check the store and does not block.
func (r *Readiness) StoreUp() bool { return r.isUp.Load() }

func (r *Readiness) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.State != Ready || !r.slowSince.IsZero()
}

// Report returns the state of the sidecar. If the last check is older than checkMaxAge, it blocks for another one,
// checkTimeout at most.
func (r *Readiness) Report(ctx context.Context) Report {
	r.mu.Lock()
	if r.HasStarted() && !r.broker.Draining() && time.Since(r.checkedAt) >= checkMaxAge {
		_ = r.check(context.WithoutCancel(ctx)) // the result is in the report, for others too
	}
	report := r.report
	r.mu.Unlock()
	switch {
	case r.broker.Draining():
		report.State, report.Reason = Draining, "this sidecar is stopping"
	case !r.HasStarted():
		report.State = Starting
	}
	return report
}

// check checks the store. It needs the mutex, and changes nothing if ctx ends.
func (r *Readiness) check(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	health, err := r.checker.Check(within)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.checkedAt = time.Now()
	if r.report.State == Ready && isSlow(err) {
		if r.slowSince.IsZero() {
			r.slowSince = r.checkedAt
		}
		if r.checkedAt.Sub(r.slowSince) < slowGrace {
			return nil
		}
	}
	r.slowSince = time.Time{}
	r.isUp.Store(err == nil)
	if err == nil {
		if r.report.State != Ready {
			r.outage.recovered(ctx, r.logger, health)
		}
		r.report = Report{State: Ready, Store: health.Store, Warnings: health.Warnings}
		return nil
	}
	r.outage.failed(ctx, r.logger, err)
	r.report = Report{
		State: StoreUnavailable, Store: r.report.Store, Warnings: r.report.Warnings,
		Reason: reasonOf(err), Cause: causeOf(err), Since: r.outage.began.UTC().Format(time.RFC3339),
	}
	return err
}

// isSlow reports whether a check timed out, which does not prove that the store is unavailable.
func isSlow(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// reasonOf returns the message of an error and of its cause.
func reasonOf(err error) string {
	e := semantics.AsError(err)
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

func causeOf(err error) string { return semantics.AsError(err).Details[semantics.DetailCause] }
