package obs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/traces"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// Calls records the calls of all wires. It is safe for concurrent use.
type Calls struct {
	// OnOutage is called for each call, and each request of a stream, that failed because the store is unavailable. It
	// must be set before the first call and must not block.
	OnOutage func()

	metrics  *Metrics
	logger   *slog.Logger
	refusals refusals
}

// NewCalls returns a Calls.
func NewCalls(metrics *Metrics, logger *slog.Logger) *Calls {
	return &Calls{metrics: metrics, logger: logger}
}

// Traces returns what records spans; nil: nothing does.
func (c *Calls) Traces() *traces.Traces { return c.metrics.Traces }

// Method converts a full gRPC method name, "/sidebus.v1.Messages/Send", to the value of the label "method",
// "Messages.Send". The empty name, of a request without a route, becomes "none".
func Method(full string) string {
	if full == "" {
		return "none"
	}
	service, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	return service[strings.LastIndexByte(service, '.')+1:] + "." + method
}

// untimed are methods that wait for another client, so that their duration does not measure Sidebus.
var untimed = map[string]bool{"Messages.Request": true}

// Done records a call that started at start: its duration without waits, and a log line without payload or token. err
// is nil for success. If the call succeeded in part, err is the failure in its answer (RECV-15). INTERNAL is logged as
// an error, everything else as debug: if the store fails, every call fails, and readiness logs that once.
func (c *Calls) Done(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	took := max(time.Since(start)-waited(ctx), 0)
	if !untimed[method] {
		c.metrics.rpcDuration.WithLabelValues(method, wire, codeOf(err)).Observe(took.Seconds())
	}
	c.record(ctx, wire, method, start, err)
}

// StreamDone is Done for a stream, without a duration: a stream lasts as long as its client wants.
func (c *Calls) StreamDone(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	c.record(ctx, wire, method, start, err)
}

// noteOutage calls OnOutage if err, which may be nil, reports that the store is unavailable. Done and StreamDone call
// it; StreamFailed also does.
func (c *Calls) noteOutage(err *semantics.Error) {
	if c.OnOutage != nil && err != nil && err.Code == semantics.StoreUnavailable &&
		err.Details[semantics.DetailCause] != semantics.CauseDraining {
		c.OnOutage()
	}
}

// StreamFailed records that one request of a stream failed. err may be nil. The stream goes on.
func (c *Calls) StreamFailed(ctx context.Context, wire, method string, err *semantics.Error) {
	c.noteOutage(err)
	if isRefusal(err) {
		c.audit(ctx, wire, method, err)
	}
}

func (c *Calls) record(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	code, level := codeOf(err), slog.LevelDebug
	if err != nil && err.Code == semantics.Internal {
		level = slog.LevelError
	}
	c.noteOutage(err)
	c.metrics.rpcs.WithLabelValues(method, wire, code).Inc()
	c.audit(ctx, wire, method, err)
	if !c.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("wire", wire), slog.String("code", code),
		slog.Duration("took", time.Since(start)),
	}
	if entity := entityOf(ctx); entity != "" {
		attrs = append(attrs, slog.String("entity", entity))
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

// Recovered converts a recovered panic value, not nil, to INTERNAL and logs it with the stack. The deferred function
// must call it directly.
func (c *Calls) Recovered(ctx context.Context, method string, recovered any) *semantics.Error {
	c.metrics.Panics.Inc()
	c.logger.LogAttrs(
		ctx, slog.LevelError, "panic in a call", slog.String("method", method),
		slog.String("panic", fmt.Sprint(recovered)), slog.String("stack", string(debug.Stack())),
	)
	return semantics.Errorf(semantics.Internal, "a bug in Sidebus ended the call; its log has the details")
}

// Failure is wireerror.Of, except that nil remains nil.
func Failure(err error) *semantics.Error {
	if err == nil {
		return nil
	}
	return wireerror.Of(err)
}
