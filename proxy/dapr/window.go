package dapr

import (
	"time"

	"github.com/sidebus/sidebus/semantics/broker/stream"
)

const (
	minWindow       = 2  // one that the app works on, one that is ready when it is done
	maxSerialWindow = 32 // to a runtime that may hand on one message after the other
	// mostWait is how long messages are to lie in such a runtime at most. Nobody else can have them then.
	maxQueueTime = 200 * time.Millisecond
)

// window says how many messages may be out on a stream.
//
// Some versions of Dapr's runtime hand the messages of a stream to the app one after the other, others all at once, and
// it does not tell. To the former few are sent, so that they do not lie there while another stream has nothing to do,
// but enough when the app is quick. An answer that overtakes another one gives the latter away: to these as many go as
// may be out, the number doubling with each round.
type window struct {
	size, most   int
	isFixed      bool
	isConcurrent bool
	wasFull      bool          // since it grew
	last         time.Time     // of an answer
	gap          time.Duration // between answers, of late
}

func newWindow(s settings, bySession bool) window {
	w := window{most: min(s.maxActive, stream.MaxCredits)}
	switch {
	case bySession: // one message of each session is out, so order needs no more care
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

// sent notes that so many messages are out.
func (w *window) sent(out int) { w.wasFull = w.wasFull || out >= w.size }

// answered notes an answer. isFirst says whether it is to the message that was out for longest, of so many.
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
	case out < minWindow || isFirstEver: // the app had nothing to do meanwhile
	default:
		if w.gap == 0 {
			w.gap = since
		}
		w.gap += (since - w.gap) / 4
		w.size = min(max(int(maxQueueTime/max(w.gap, time.Microsecond)), minWindow), maxSerialWindow, w.most)
	}
}
