package readiness

import (
	"context"
	"log/slog"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// outage logs a time in which the store cannot serve: its beginning, each further cause once, every logPause that it
// goes on, and its end. It is zero while there is none.
type outage struct {
	began, logged time.Time
	causes        map[string]bool // that were logged; there are few
}

func (o *outage) failed(ctx context.Context, logger *slog.Logger, err error) {
	now, text := time.Now(), "the store still cannot serve"
	if o.began.IsZero() {
		o.began, o.causes, text = now, map[string]bool{}, "the store cannot serve"
	}
	cause := causeOf(err)
	if o.causes[cause] && now.Sub(o.logged) < logInterval {
		return
	}
	o.logged, o.causes[cause] = now, true
	logger.LogAttrs(
		ctx,
		slog.LevelWarn,
		text,
		slog.String(
			"cause", cause,
		),
		slog.String("reason", reasonOf(err)),
		slog.Duration("for", now.Sub(o.began).Round(time.Millisecond)),
	)
}

func (o *outage) recovered(ctx context.Context, logger *slog.Logger, health semantics.Health) {
	attrs := []slog.Attr{slog.String("store", health.Store), slog.Any("warnings", health.Warnings)}
	text := "the store can serve"
	if !o.began.IsZero() {
		text += " again"
		attrs = append(attrs, slog.Duration("after", time.Since(o.began).Round(time.Millisecond)))
	}
	*o = outage{}
	logger.LogAttrs(ctx, slog.LevelInfo, text, attrs...)
}
