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

// Done records one call that began at start: its time, and a log line that names method, wire and reason but neither
// payload nor token. err is nil when it succeeded. INTERNAL is logged as an error, all else at level debug: what fails with
// the store fails for every call, so readiness says it once.
func (c *Calls) Done(ctx context.Context, wire, method string, start time.Time, err *semantics.Error) {
	took := time.Since(start)
	code, level := "OK", slog.LevelDebug
	if err != nil {
		code = string(err.Code)
		if err.Code == semantics.Internal {
			level = slog.LevelError
		}
	}
	c.metrics.RPCDuration.WithLabelValues(method, wire, code).Observe(took.Seconds())
	if !c.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("wire", wire), slog.String("code", code), slog.Duration("took", took),
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	c.logger.LogAttrs(ctx, level, "call", attrs...)
}

// Recovered turns what recover gave, which must not be nil, into INTERNAL and logs it with the stack. It must be called
// by the deferred function itself.
func (c *Calls) Recovered(ctx context.Context, method string, recovered any) *semantics.Error {
	c.metrics.Panics.Inc()
	c.logger.LogAttrs(ctx, slog.LevelError, "panic in a call",
		slog.String("method", method), slog.String("panic", fmt.Sprint(recovered)), slog.String("stack", string(debug.Stack())))
	return semantics.Errorf(semantics.Internal, "a bug in Sidebus ended the call")
}

// Sent counts the outcomes of a send.
func (m *Metrics) Sent(results []semantics.SendResult) {
	stored := 0
	for _, r := range results {
		if !r.Deduplicated {
			stored++
		}
	}
	m.MessagesSent.Add(float64(stored))
	m.MessagesDeduplicated.Add(float64(len(results) - stored))
}

// Settled counts the outcomes of a settlement. A message that was refused and keeps its lock is neither settled nor lost.
func (m *Metrics) Settled(verb string, codes []semantics.Code) {
	settled, lost := 0, 0
	for _, code := range codes {
		switch code {
		case "":
			settled++
		case semantics.MessageLockLost, semantics.SessionLockLost:
			lost++
		default:
		}
	}
	m.MessagesSettled.WithLabelValues(verb).Add(float64(settled))
	if lost > 0 {
		m.LocksLost.WithLabelValues(verb).Add(float64(lost))
	}
}

// Failure is wireerror.Of that keeps nil.
func Failure(err error) *semantics.Error {
	if err == nil {
		return nil
	}
	return wireerror.Of(err)
}
