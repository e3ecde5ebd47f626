package admission

import (
	"log/slog"
	"sync"
	"time"
)

// quietFor is the least time between two lines about the same.
const quietFor = 30 * time.Second

// quiet writes a line about something when it begins, and then how often it happened every quietFor, as long as it
// happens.
type quiet struct {
	logger *slog.Logger
	text   string

	mu       sync.Mutex
	isSilent bool
	count    int // since the last line
	args     []any
}

func (q *quiet) note(args ...any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isSilent {
		q.count++
		q.args = args
		return
	}
	q.isSilent = true
	q.logger.Warn(q.text, append(args, "times", 1)...)
	time.AfterFunc(quietFor, q.sum)
}

func (q *quiet) sum() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isSilent = q.count > 0; q.isSilent {
		q.logger.Warn(q.text, append(q.args, "times", q.count)...)
		q.count = 0
		time.AfterFunc(quietFor, q.sum)
	}
}
