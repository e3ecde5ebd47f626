package serve

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

// newLogger makes the one logger of the process.
func newLogger(level, format string, to io.Writer) (*slog.Logger, error) {
	var least slog.Level
	switch strings.ToLower(level) {
	case "debug", "info", "warn", "error":
		if err := least.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("--log-level: %w", err)
		}
	default:
		return nil, settings.Bad("log-level", "is %q, must be debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: readable}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(to, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(to, options)), nil
	case "auto":
		if terminal.Is(to) {
			return slog.New(slog.NewTextHandler(to, options)), nil
		}
		return slog.New(slog.NewJSONHandler(to, options)), nil
	default:
		return nil, settings.Bad("log-format", "is %q, must be json, text or auto", format)
	}
}

// readable writes durations as people read them, and leaves out errors that there are none of.
func readable(_ []string, attribute slog.Attr) slog.Attr {
	switch attribute.Value.Kind() {
	case slog.KindDuration:
		return slog.String(attribute.Key, attribute.Value.Duration().String())
	case slog.KindAny:
		if attribute.Value.Any() == nil {
			return slog.Attr{}
		}
	default:
	}
	return attribute
}
