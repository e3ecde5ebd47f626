package obs

import (
	"log/slog"
	"time"

	"github.com/sidebus/sidebus/proxy/lograte"
	"github.com/sidebus/sidebus/semantics"
)

// FailureLogInterval is the least time between two lines of a FailureLog.
const FailureLogInterval = 10 * time.Second

// FailureLog logs messages that the app failed to process. It is safe for concurrent use.
type FailureLog struct{ log *lograte.Logger }

// NewFailureLog returns a FailureLog that writes to logger, at most one line in each FailureLogInterval.
func NewFailureLog(logger *slog.Logger) FailureLog {
	return FailureLog{lograte.New(logger, "the app failed a message; it is abandoned and will be delivered again",
		FailureLogInterval)}
}

// Note logs that the app failed m, and why.
func (f FailureLog) Note(m *semantics.Received, why string) {
	f.log.Warn("why", why, "sequenceNumber", m.SequenceNumber, "messageId", m.MessageID,
		"deliveryCount", m.DeliveryCount)
}
