//go:build unix

package embedded

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// keptLines is how many of the server's last lines a failure report shows.
const keptLines = 8

// output passes the server's log lines to the sidecar's log, for debugging, and keeps the last ones for a report.
type output struct {
	logger *slog.Logger

	mu    sync.Mutex
	part  []byte // a line that has not ended yet
	lines []string
}

// Write takes any piece of the server's output; it never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		line, rest, ended := bytes.Cut(o.part, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		o.part = rest
		o.take(strings.TrimSpace(string(line)))
	}
}

func (o *output) take(line string) {
	if line == "" {
		return
	}
	o.logger.Debug("private server", "line", line)
	if len(o.lines) == keptLines {
		o.lines = o.lines[1:]
	}
	o.lines = append(o.lines, line)
}

// last returns the last lines, one below the other.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, "\n")
}
