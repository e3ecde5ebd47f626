package otlp

import (
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
)

// complaints is where the SDK writes what it cannot read of its variables. It passes on what is wrong, but neither the
// values, which may have the credentials of the collector, nor errors that quote them.
type complaints struct{ logger *slog.Logger }

// Init implements logr.LogSink.
func (complaints) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: only errors are passed on.
func (complaints) Enabled(level int) bool { return level == 0 }

// Info implements logr.LogSink.
func (complaints) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (c complaints) Error(err error, message string, _ ...any) {
	what := []any{"problem", message}
	if err != nil && strings.Contains(message, " tls ") { // it has the name of a file
		what = append(what, "error", err)
	}
	c.logger.Warn("a variable of OpenTelemetry is not valid and was ignored", what...)
}

// WithValues implements logr.LogSink.
func (c complaints) WithValues(...any) logr.LogSink { return c }

// WithName implements logr.LogSink.
func (c complaints) WithName(string) logr.LogSink { return c }
