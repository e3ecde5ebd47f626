// Package lograte limits how often a log line is written. It is public within the module because cmd logs what the
// store reports by it.
package lograte

import (
	"log/slog"
	"sync"
	"time"
)

// Logger writes warnings with one constant message, at most one in each interval. The first warning is written at once.
// It is safe for concurrent use.
type Logger struct {
	logger   *slog.Logger
	message  string
	interval time.Duration

	mu         sync.Mutex
	last       time.Time
	suppressed int // since the last line
}

// New returns a Logger that writes message to logger.
func New(logger *slog.Logger, message string, interval time.Duration) *Logger {
	return &Logger{logger: logger, message: message, interval: interval}
}

// Warn writes the message with args, unless the last line is younger than the interval. The field "suppressed" of a
// line is the number of warnings since the last line that were not written.
func (l *Logger) Warn(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.last.IsZero() && now.Sub(l.last) < l.interval {
		l.suppressed++
		return
	}
	l.logger.Warn(l.message, append(args, "suppressed", l.suppressed)...)
	l.last, l.suppressed = now, 0
}
