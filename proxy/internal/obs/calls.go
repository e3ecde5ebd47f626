package obs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// Calls observes the calls of both wires in the same way. It is safe for concurrent use.
type Calls struct {
	// OnOutage, when set before the first call, is told of each call that failed because the store could not serve. It
	// must not block.
	OnOutage func()

	metrics *Metrics
	logger  *slog.Logger
}

// NewCalls makes a Calls.
func NewCalls(metrics *Metrics, logger *slog.Logger) *Calls {
	return &Calls{metrics: metrics, logger: logger}
}

// Method turns a full gRPC method name, "/sidebus.v1.Messages/Send", into the value of the label "method",
// "Messages.Send". The empty name, of a request that met no route, is "none".
func Method(full string) string {
	if full == "" {
		return "none"
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	return service[strings.LastIndexByte(service, '.')+1:] + "." + method
}

// untimed are methods that wait for someone else, so that their duration says nothing about Sidebus.
var untimed = map[string]bool{"Messages.Request": true}

// Done records one call that began at start: its duration without what it waited, and a log line with method, wire and
// reason but neither payload nor token. err is nil if it succeeded. INTERNAL is logged as an error, everything else as
// debug: if the store fails every call fails, and readiness logs that once.
func (c *Calls) Done(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	took := max(time.Since(start)-waited(ctx), 0)
	if !untimed[method] {
		c.metrics.rpcDuration.WithLabelValues(method, wire, codeOf(err)).Observe(took.Seconds())
	}
	c.record(ctx, wire, method, start, err)
}

// StreamDone is Done for a stream, which lasts as long as its client likes and is not timed.
func (c *Calls) StreamDone(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	c.record(ctx, wire, method, start, err)
}

func (c *Calls) record(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	code, level := codeOf(err), slog.LevelDebug
	if err != nil {
		if err.Code == semantics.Internal {
			level = slog.LevelError
		}
		if c.OnOutage != nil && err.Code == semantics.StoreUnavailable &&
			err.Details[semantics.DetailCause] != semantics.CauseDraining {
			c.OnOutage()
		}
	}
	c.metrics.rpcs.WithLabelValues(method, wire, code).Inc()
	if !c.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String(
			"method", method,
		), slog.String("wire", wire), slog.String("code", code), slog.Duration("took", time.Since(start)),
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	c.logger.LogAttrs(ctx, level, "call", attrs...)
}

// codeOf returns the value of the label "code".
func codeOf(err *semantics.Error) string {
	if err == nil {
		return "OK"
	}
	return string(err.Code)
}

// Recovered turns what recover gave, which must not be nil, into INTERNAL and logs it with the stack. It must be called
// by the deferred function itself.
func (c *Calls) Recovered(ctx context.Context, method string, recovered any) *semantics.Error {
	c.metrics.Panics.Inc()
	c.logger.LogAttrs(
		ctx,
		slog.LevelError,
		"panic in a call",
		slog.String(
			"method", method,
		),
		slog.String("panic", fmt.Sprint(recovered)),
		slog.String("stack", string(debug.Stack())),
	)
	return semantics.Errorf(semantics.Internal, "a bug in Sidebus ended the call")
}

// Failure is wireerror.Of that keeps nil.
func Failure(err error) *semantics.Error {
	if err == nil {
		return nil
	}
	return wireerror.Of(err)
}
