// Package lograte limits how often a log line is written. It is public within the module because cmd logs what the
// store reports by it.
package lograte

import (
	"log/slog"
	"sync"
	"time"
)

// Logger writes warnings with one constant message, at most one in each interval: the first at once, and at the end of
// an interval the last that came within it. It is safe for concurrent use and does not block.
type Logger struct {
	logger   *slog.Logger
	message  string
	interval time.Duration

	mu      sync.Mutex
	isQuiet bool  // a line was written in this interval
	args    []any // of the last warning since then
	count   int   // of warnings since then
}

// New returns a Logger that writes message to logger.
func New(logger *slog.Logger, message string, interval time.Duration) *Logger {
	return &Logger{logger: logger, message: message, interval: interval}
}

// Warn writes the message with args, now or at the end of the interval. The field "suppressed" of a line is the number
// of warnings since the last line that are not written.
func (l *Logger) Warn(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.args, l.count = args, l.count+1
	if !l.isQuiet {
		l.write()
	}
}

// write writes the last warning and begins an interval.
func (l *Logger) write() {
	l.logger.Warn(l.message, append(l.args, "suppressed", l.count-1)...)
	l.isQuiet, l.args, l.count = true, nil, 0
	time.AfterFunc(l.interval, l.endInterval)
}

func (l *Logger) endInterval() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isQuiet = false
	if l.count > 0 {
		l.write()
	}
}
