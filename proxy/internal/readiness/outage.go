package readiness

import (
	"context"
	"log/slog"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// outage logs a time in which the store is unavailable: its start, each new cause once, one line in each logInterval,
// and its end. The zero value means that there is no outage.
type outage struct {
	began, logged time.Time
	causes        map[string]bool // that were logged
}

func (o *outage) failed(ctx context.Context, logger *slog.Logger, err error) {
	now, text := time.Now(), "store still unavailable"
	if o.began.IsZero() {
		o.began, o.causes, text = now, map[string]bool{}, "store unavailable"
	}
	cause := causeOf(err)
	if o.causes[cause] && now.Sub(o.logged) < logInterval {
		return
	}
	o.logged, o.causes[cause] = now, true
	logger.LogAttrs(
		ctx, slog.LevelWarn, text, slog.String("cause", cause), slog.String("reason", reasonOf(err)),
		slog.Duration("for", now.Sub(o.began).Round(time.Millisecond)),
	)
}

func (o *outage) recovered(ctx context.Context, logger *slog.Logger, health semantics.Health) {
	attrs := []slog.Attr{slog.String("store", health.Store), slog.Any("warnings", health.Warnings)}
	text := "store is available"
	if !o.began.IsZero() {
		text += " again"
		attrs = append(attrs, slog.Duration("after", time.Since(o.began).Round(time.Millisecond)))
	}
	*o = outage{}
	logger.LogAttrs(ctx, slog.LevelInfo, text, attrs...)
}
