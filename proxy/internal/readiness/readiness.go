// Package readiness answers whether the sidecar can serve. It looks at the store now and then, when it is asked, and
// when a call has failed, remembers for a moment what it saw, and logs when an outage begins, goes on, and ends.
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
	Cause    string   `json:"cause,omitempty"`    // the same in a word
	Since    string   `json:"since,omitempty"`    // for how long the store cannot serve: an instant
}

// How long one look at the store may take, and how long it is believed.
const (
	checkTimeout = time.Second
	checkMaxAge  = time.Second
)

// How long to wait between two looks while starting.
const (
	minStartPause = 50 * time.Millisecond
	maxStartPause = time.Second
)

// How often Watch looks at the store: while it can serve, while it cannot, and at most when calls fail. How often an
// outage is logged.
const (
	upInterval   = 5 * time.Second
	downInterval = time.Second
	recheckDelay = 100 * time.Millisecond
	logInterval  = 30 * time.Second
)

// slowGrace is for how long a store that was fit may give no answer in time before it counts as one that cannot serve.
// Large replies on all connections look the same for a while.
const slowGrace = 10 * time.Second

// Readiness watches one store for one Broker. It is safe for concurrent use.
type Readiness struct {
	checker semantics.Checker
	broker  *broker.Broker
	logger  *slog.Logger
	started chan struct{} // closed once the store was seen fit
	recheck chan struct{} // has room for one: a call has failed
	isUp    atomic.Bool   // the last look found the store fit

	mu        sync.Mutex // held while looking, so that many who ask at once make one look
	report    Report     // of the last look
	checkedAt time.Time
	slowSince time.Time // since when looks have taken too long; zero: the last one has not
	outage    outage
}

// New makes a Readiness.
func New(checker semantics.Checker, broker *broker.Broker, logger *slog.Logger) *Readiness {
	return &Readiness{
		checker: checker, broker: broker, logger: logger, started: make(chan struct{}), recheck: make(chan struct{}, 1),
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

// Doubt makes Watch look at once. It does not block.
func (r *Readiness) CheckSoon() {
	select {
	case r.recheck <- struct{}{}:
	default:
	}
}

// Watch looks at the store until ctx ends, so that an outage is logged when it begins, whether anybody asks or not.
func (r *Readiness) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		pause, doubts := upInterval, r.recheck
		if r.isDown() {
			pause, doubts = downInterval, nil // what fails now is known
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
			_ = r.check(ctx) // what it saw is in the report
		}
		r.mu.Unlock()
	}
}

// StoreUp reports whether the last look found the store fit to serve. It looks at nothing itself and does not block on
// the store.
func (r *Readiness) StoreUp() bool { return r.isUp.Load() }

func (r *Readiness) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.State != Ready || !r.slowSince.IsZero()
}

// Report tells whether the sidecar is ready. It blocks for one look at the store, a second at most, unless the last one
// is younger than a second.
func (r *Readiness) Report(ctx context.Context) Report {
	r.mu.Lock()
	if r.HasStarted() && !r.broker.Draining() && time.Since(r.checkedAt) >= checkMaxAge {
		_ = r.check(context.WithoutCancel(ctx)) // what it saw is in the report, for others too
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

// look needs the lock. It leaves no trace when ctx ends.
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

// isSlow reports whether a look failed because it took too long, which is no proof that the store cannot serve.
func isSlow(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// reasonOf gives what people are told of a failure: what it means, and what the store said.
func reasonOf(err error) string {
	e := semantics.AsError(err)
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

func causeOf(err error) string { return semantics.AsError(err).Details[semantics.DetailCause] }
