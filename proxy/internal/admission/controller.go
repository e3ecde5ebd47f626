package admission

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/admission/internal/counts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/lograte"
	"github.com/sidebus/sidebus/semantics"
)

const (
	maxConnWaits   = maxStreams * 9 / 10    // waits of one connection; the other streams are for other calls
	maxStreams     = 10_000                 // concurrent calls of one gRPC connection
	logInterval    = 30 * time.Second       // least time between two log lines about the same refusal
	waitRetryAfter = 500 * time.Millisecond // RetryAfter of a wait that was refused
)

// Controller admits connections and requests. It is safe for concurrent use.
type Controller struct {
	memory      *memoryBudget
	connections *counts.Connections

	grpcAccepted   atomic.Uint64 // connections, ever
	maxConnections int
	readTimeout    time.Duration
	metrics        *obs.Metrics
	connectionLog  *lograte.Logger
	requestLog     *lograte.Logger
	responseLog    *lograte.Logger
}

// Config has the limits of a Controller.
type Config struct {
	MaxConnections int           // open at a time
	MaxMemory      int64         // bytes for requests in flight, and as many for responses
	ReadTimeout    time.Duration // for a request to arrive, plus one second for each 64 KiB of it
}

// New returns a Controller. metrics and logger must not be nil.
func New(config Config, metrics *obs.Metrics, logger *slog.Logger) *Controller {
	return &Controller{
		memory: &memoryBudget{
			limit:         config.MaxMemory,
			requestGauge:  metrics.RequestMemory,
			responseGauge: metrics.AnswerMemory,
		},
		connections:    counts.New(config.MaxConnections, maxConnWaits, metrics),
		maxConnections: config.MaxConnections, readTimeout: config.ReadTimeout, metrics: metrics,
		connectionLog: lograte.New(logger, "connections or waits refused; too many are open", logInterval),
		requestLog:    lograte.New(logger, "requests refused; requests in flight use all request memory", logInterval),
		responseLog:   lograte.New(logger, "receives or peeks refused; unread responses use all response memory", logInterval),
	}
}

// requestRefused counts and logs a request that was refused for lack of memory.
func (ctl *Controller) requestRefused() {
	ctl.metrics.RequestsRefused.Inc()
	ctl.requestLog.Warn("limit", ctl.memory.limit)
}

// admit counts a new connection and reports whether it may stay open. With mayRespond, some connections over the limit
// stay open too, so that their requests are answered THROTTLED.
func (ctl *Controller) admit(c *counts.Connection, mayRespond bool) bool {
	ctl.metrics.Connections.WithLabelValues(c.Wire).Inc()
	mayStay, isRefused, closeOther := ctl.connections.Admit(c, mayRespond)
	if closeOther != nil {
		closeOther()
	}
	if isRefused {
		ctl.metrics.ConnectionsRefused.WithLabelValues(c.Wire).Inc()
		ctl.connectionLog.Warn("limit", ctl.maxConnections)
	}
	if !mayStay {
		ctl.metrics.Connections.WithLabelValues(c.Wire).Dec()
	}
	return mayStay
}

// CloseUnused closes gRPC connections that have not sent a frame and refuses new ones. Without it, GracefulStop of
// grpc-go waits for them.
func (ctl *Controller) CloseUnused() {
	for _, closeUnused := range ctl.connections.Stop() {
		closeUnused()
	}
}

// waitRefused logs that a wait or stream was refused, and returns its error.
func (ctl *Controller) waitRefused() error {
	ctl.connectionLog.Warn("limit", ctl.maxConnections)
	e := semantics.Errorf(
		semantics.Throttled,
		"too many receives and streams wait in this sidecar; use fewer connections, or try again later",
	)
	e.RetryAfter = waitRetryAfter
	return e
}
