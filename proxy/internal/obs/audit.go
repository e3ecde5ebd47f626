package obs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sidebus/sidebus/semantics"
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

// audit logs a call that changes entities or clears them, and a call that was refused for lack of a right, each in one
// line with the message "audit".
func (c *Calls) audit(ctx context.Context, wire, method, code string, err *semantics.Error) {
	isRefusal := err != nil && (err.Code == semantics.PermissionDenied || err.Code == semantics.Unauthenticated)
	if !isRefusal && !isManagement(method) {
		return
	}
	attrs := []slog.Attr{slog.String("method", method), slog.String("wire", wire), slog.String("code", code)}
	if call, ok := ctx.Value(callKey{}).(*Call); ok {
		for _, a := range []struct{ key, value string }{
			{"entity", call.entity}, {"caller", call.callerText()}, {"peer", call.peerText()},
		} {
			if a.value != "" {
				attrs = append(attrs, slog.String(a.key, semantics.Shorten(a.value)))
			}
		}
	}
	if isRefusal {
		attrs = append(attrs, slog.String("reason", err.Message))
	}
	c.logger.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
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
