package obs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Wires in the audit besides those that have metrics.
const (
	Push  = "push"  // handlers
	Admin = "admin" // the admin address
)

// Named is a caller whose name may be logged.
type Named interface{ Name() string }

// By notes who makes the call of ctx, for the audit: the caller, nil if it has proven nothing, and where it connects
// from. Their texts are made only if a line is written.
func By(ctx context.Context, caller Named, peer fmt.Stringer) {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.caller, c.peer = caller, peer
	}
}

func (c *Call) callerText() string {
	if c.caller == nil {
		return ""
	}
	return c.caller.Name()
}

func (c *Call) peerText() string {
	if c.peer == nil {
		return ""
	}
	return c.peer.String()
}

// audit logs a call that changes entities or clears them, and a call that was refused for lack of a right.
func (c *Calls) audit(ctx context.Context, wire, method string, err *semantics.Error) {
	switch {
	case isRefusal(err):
		if suppressed, isAdmitted := c.refusals.admit(time.Now()); isAdmitted {
			Audit(ctx, c.logger, wire, method, err, suppressed...)
		}
	case isManagement(method):
		Audit(ctx, c.logger, wire, method, err)
	}
}

// maxRefusals is how many refused calls are logged in a second: callers without rights must not fill the disk.
const maxRefusals = 100

// refusals admits lines of refused calls.
type refusals struct {
	mu                sync.Mutex
	second            int64
	lines, suppressed int
}

// admit reports whether a line may be written now. The first of a second has the number of those that were not.
func (r *refusals) admit(now time.Time) (suppressed []slog.Attr, isAdmitted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.lines = second, 0
	}
	if r.lines == maxRefusals {
		r.suppressed++
		return nil, false
	}
	if r.lines++; r.suppressed > 0 {
		suppressed = []slog.Attr{slog.Int("suppressed", r.suppressed)}
		r.suppressed = 0
	}
	return suppressed, true
}

// Audit logs who has called a method, in one line with the message "audit". err is nil for success.
func Audit(
	ctx context.Context, logger *slog.Logger, wire, method string, err *semantics.Error, more ...slog.Attr,
) {
	attrs := []slog.Attr{slog.String("method", method), slog.String("wire", wire), slog.String("code", codeOf(err))}
	call, ok := ctx.Value(callKey{}).(*Call)
	if !ok {
		call = &Call{}
	}
	entity := call.entity
	if err != nil {
		entity = cmp.Or(entity, err.Details[semantics.DetailEntity])
	}
	for _, a := range []struct{ key, value string }{
		{"entity", entity}, {"caller", call.callerText()}, {"peer", call.peerText()},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, semantics.Shorten(a.value)))
		}
	}
	if isRefusal(err) {
		attrs = append(attrs, slog.String("reason", err.Message))
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "audit", append(attrs, more...)...)
}

// Refusals audits an attempt that is repeated until it succeeds: a refusal that is the same as the last one is not
// logged again.
type Refusals struct{ last semantics.Code }

// Note audits an attempt that failed for lack of a right. err is the outcome of the attempt, nil for success.
func (r *Refusals) Note(ctx context.Context, logger *slog.Logger, wire, method string, err error) {
	code := semantics.CodeOf(err)
	if code == r.last {
		return
	}
	r.last = code
	if failure := Failure(err); isRefusal(failure) {
		Audit(ctx, logger, wire, method, failure)
	}
}

func isRefusal(err *semantics.Error) bool {
	return err != nil && (err.Code == semantics.PermissionDenied || err.Code == semantics.Unauthenticated)
}

// isManagement reports whether an operator wants to know who made a call of a method: it changes an entity or its
// rules, or removes or moves what others sent.
func isManagement(method string) bool {
	switch method {
	case "Messages.Purge", "Messages.Resubmit", "Messages.DeleteBySequence", "Sessions.Unblock", "Sessions.DeadLetterRest":
		return true
	}
	verb, isAdmin := strings.CutPrefix(method, "Admin.")
	return isAdmin && !strings.HasPrefix(verb, "Get") && !strings.HasPrefix(verb, "List")
}
