package inflight

import (
	"time"

	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Sizes of a Window.
const (
	MinWindow       = 2  // one for the app to process, one that is ready next
	MaxSerialWindow = 32 // for a runtime that may pass messages on one at a time
	// maxQueueTime is how long messages should wait in such a runtime, where other receivers cannot get them.
	maxQueueTime = 200 * time.Millisecond
)

// Limits are what the metadata says about messages in flight.
type Limits struct {
	MaxActive   int // messages in flight at a time
	MaxHandlers int // messages that the app works on at a time; 0: all in flight
	MaxSessions int
}

// Window controls how many messages of a stream may be unacknowledged.
//
// Some versions of the Dapr runtime pass messages to the app one at a time, others all at once, and the runtime does
// not report which. In the first case the window is small, so that messages do not wait in the runtime while another
// stream is idle, but large enough for a fast app. An acknowledgment out of order proves the second case: then the
// window doubles with each round up to the maximum.
type Window struct {
	size, most   int
	isFixed      bool
	isConcurrent bool
	wasFull      bool          // since the last growth
	last         time.Time     // of the last acknowledgment
	gap          time.Duration // between acknowledgments, moving average
}

// NewWindow returns the window of a new subscription. bySession reports whether its source has sessions.
func NewWindow(l Limits, bySession bool) Window {
	w := Window{most: min(l.MaxActive, stream.MaxCredits)}
	switch {
	case bySession: // one message of each session at a time keeps the order
		w.isFixed, w.size = true, min(l.MaxSessions, w.most)
		if l.MaxHandlers > 0 {
			w.size = min(w.size, l.MaxHandlers)
		}
	case l.MaxHandlers > 0:
		w.isFixed, w.size = true, min(l.MaxHandlers, w.most)
	default:
		w.size = min(MinWindow, w.most)
	}
	return w
}

// Size returns how many messages may be unacknowledged.
func (w *Window) Size() int { return w.size }

// Sent notes the number of unacknowledged messages after a send.
func (w *Window) Sent(out int) { w.wasFull = w.wasFull || out >= w.size }

// Answered notes an acknowledgment. isFirst reports whether it is for the oldest of out messages.
func (w *Window) Answered(isFirst bool, out int, now time.Time) {
	w.isConcurrent = w.isConcurrent || !isFirst
	if w.isFixed {
		return
	}
	since := now.Sub(w.last)
	isFirstEver := w.last.IsZero()
	w.last = now
	switch {
	case w.isConcurrent:
		if w.wasFull {
			w.size, w.wasFull = min(2*w.size, w.most), false
		}
	case out < MinWindow || isFirstEver: // the app was idle
	default:
		if w.gap == 0 {
			w.gap = since
		}
		w.gap += (since - w.gap) / 4
		w.size = min(max(int(maxQueueTime/max(w.gap, time.Microsecond)), MinWindow), MaxSerialWindow, w.most)
	}
}
