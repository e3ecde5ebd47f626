package obs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Push is the wire of push handlers in the audit.
const Push = "push"

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
	if isManagement(method) {
		Audit(ctx, c.logger, wire, method, err)
	} else {
		AuditRefusal(ctx, c.logger, wire, method, err)
	}
}

// AuditRefusal logs an attempt that failed for lack of a right, as Audit does; other errors and nil are not logged.
func AuditRefusal(ctx context.Context, logger *slog.Logger, wire, method string, err *semantics.Error) {
	if isRefusal(err) {
		Audit(ctx, logger, wire, method, err)
	}
}

// Audit logs who has called a method, in one line with the message "audit". err is nil for success.
func Audit(ctx context.Context, logger *slog.Logger, wire, method string, err *semantics.Error) {
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
	logger.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
}

// Refusals audits an attempt that is repeated until it succeeds: a refusal that is the same as the last one is not
// logged again.
type Refusals struct{ last semantics.Code }

// Note audits the outcome of an attempt, nil for success.
func (r *Refusals) Note(ctx context.Context, logger *slog.Logger, wire, method string, err error) {
	if code := semantics.CodeOf(err); code != r.last {
		r.last = code
		AuditRefusal(ctx, logger, wire, method, Failure(err))
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
