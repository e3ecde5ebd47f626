package obs

import (
	"log/slog"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// FaultPause is the least time between two lines about messages that the app has failed.
const FailureLogInterval = 10 * time.Second

// Faults writes a line about a message that the app has failed, but not about each when there are many. Logger must be
// set before the first Note; Note may be called concurrently.
type FailureLog struct {
	Logger *slog.Logger

	mu     sync.Mutex
	last   time.Time
	silent int // since the last line
}

// Note notes that the app has failed a message, and why.
func (f *FailureLog) Note(m *semantics.Received, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.last.IsZero() || now.Sub(f.last) >= FailureLogInterval {
		f.Logger.Warn(
			"the app failed a message, which is given back and comes again", "why", why, "sequenceNumber",
			m.SequenceNumber, "messageId", m.MessageID, "deliveryCount", m.DeliveryCount, "others", f.silent,
		)
		f.last, f.silent = now, 0
		return
	}
	f.silent++
}
