package inflight

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Reason is why a message is settled.
type Reason uint8

// Reasons.
const (
	Processed      Reason = iota // the app has acknowledged it
	TimedOut                     // the app has not acknowledged it in time
	ConnectionLost               // the runtime had it when the connection was lost, so the app may have begun
	Returned                     // it was not sent, waits behind a blocked message, or the stream has ended in order
)

// Queue has the messages of one stream that are in flight. Its methods may be called concurrently.
type Queue struct {
	life   context.Context //nolint:containedctx // until the stream ends: also what a timer settles ends soon after
	settle func(ctx context.Context, why Reason, messages []*Message)

	Settlements settlements

	mu             sync.Mutex
	sub            *stream.Subscription // the current one, or nil
	handlerTimeout time.Duration        // how long the app may work on a message; 0: without a limit
	isPaused       bool
	isClosed       bool // nothing is sent, and acknowledgments have no effect
	window         Window
	messages       []*Message  // sent but not acknowledged, in the order of sending
	watched        *Message    // the message that the app is processing, as far as is known
	timer          *time.Timer // of the watched message, or of headOfLine
	headOfLine     headOfLine  // set if the oldest message was not acknowledged in time
	completions    completionBatch
}

// New returns the queue of a stream that lives until life ends. The queue calls settle in goroutines, each time with
// life and messages of one subscription; settle may block until then, and must end soon after.
func New(life context.Context, settle func(ctx context.Context, why Reason, messages []*Message)) *Queue {
	return &Queue{life: life, settle: settle, Settlements: settlements{life: life, next: make(chan func())}}
}

// Subscribed notes a new subscription, with a window of its own, and grants it credits.
func (q *Queue) Subscribed(sub *stream.Subscription, w Window, handlerTimeout time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.isConcurrent = q.window.isConcurrent
	q.sub, q.window, q.handlerTimeout = sub, w, handlerTimeout
	q.grant()
}

// Unsubscribed notes that the subscription is about to end: its credits do not change any more. Its messages stay.
func (q *Queue) Unsubscribed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sub = nil
}

// SetPaused pauses or resumes the stream.
func (q *Queue) SetPaused(isPaused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isPaused = isPaused
	q.grant()
}

// Close ends the queue: later acknowledgments have no effect, and earlier ones are settled. It settles what is left as
// ConnectionLost if the connection is lost and it was sent, otherwise as Returned.
func (q *Queue) Close(isConnectionLost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.undecided()
	q.isClosed, q.messages = true, nil
	q.watchHead()
	q.flush()
	for _, m := range left {
		why := Returned
		if isConnectionLost && m.isSent {
			why = ConnectionLost
		}
		q.start(why, m)
	}
}

// changed updates the timer and the credits after the queue has changed.
func (q *Queue) changed() {
	q.watchHead()
	q.grant()
}

// grant sets the credits of the subscription to the size of the window. It subtracts messages that the subscription
// does not count. While the queue is blocked, it grants none, or one for a probe. Since the mutex is locked, an older
// number never replaces a newer one.
func (q *Queue) grant() {
	if q.sub == nil {
		return
	}
	credits := q.window.Size()
	for _, m := range q.messages {
		if m.isDecided || m.Sub != q.sub {
			credits--
		}
	}
	switch {
	case q.headOfLine.message != nil && q.headOfLine.mayProbe:
		credits = 1
	case q.headOfLine.message != nil:
		credits = 0
	}
	if q.isPaused || q.isClosed {
		credits = 0
	}
	_ = q.sub.SetCredits(max(credits, 0)) // never out of range
}

// start settles messages in a goroutine.
func (q *Queue) start(why Reason, messages ...*Message) {
	q.Settlements.start(func() { q.settle(q.life, why, messages) })
}

// after calls do when d has elapsed, while the mutex of the queue is locked.
func after(q *Queue, d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		do()
	})
}
