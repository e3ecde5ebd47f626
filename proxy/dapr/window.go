package dapr

import (
	"time"

	"github.com/sidebus/sidebus/semantics/broker/stream"
)

const (
	minWindow       = 2  // one for the app to process, one that is ready next
	maxSerialWindow = 32 // for a runtime that may pass messages on one at a time
	// maxQueueTime is how long messages should wait in such a runtime, where other receivers cannot get them.
	maxQueueTime = 200 * time.Millisecond
)

// window controls how many messages of a stream may be unacknowledged.
//
// Some versions of the Dapr runtime pass messages to the app one at a time, others all at once, and the runtime does
// not report which. In the first case the window is small, so that messages do not wait in the runtime while another
// stream is idle, but large enough for a fast app. An acknowledgment out of order proves the second case: then the
// window doubles with each round up to the maximum.
type window struct {
	size, most   int
	isFixed      bool
	isConcurrent bool
	wasFull      bool          // since the last growth
	last         time.Time     // of the last acknowledgment
	gap          time.Duration // between acknowledgments, moving average
}

func newWindow(s settings, bySession bool) window {
	w := window{most: min(s.maxActive, stream.MaxCredits)}
	switch {
	case bySession: // one message of each session at a time keeps the order
		w.isFixed, w.size = true, min(s.maxSessions, w.most)
		if s.maxHandlers > 0 {
			w.size = min(w.size, s.maxHandlers)
		}
	case s.maxHandlers > 0:
		w.isFixed, w.size = true, min(s.maxHandlers, w.most)
	default:
		w.size = min(minWindow, w.most)
	}
	return w
}

// sent notes the number of unacknowledged messages after a send.
func (w *window) sent(out int) { w.wasFull = w.wasFull || out >= w.size }

// answered notes an acknowledgment. isFirst reports whether it is for the oldest of out messages.
func (w *window) answered(isFirst bool, out int, now time.Time) {
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
	case out < minWindow || isFirstEver: // the app was idle
	default:
		if w.gap == 0 {
			w.gap = since
		}
		w.gap += (since - w.gap) / 4
		w.size = min(max(int(maxQueueTime/max(w.gap, time.Microsecond)), minWindow), maxSerialWindow, w.most)
	}
}
