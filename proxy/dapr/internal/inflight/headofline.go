package inflight

import (
	"cmp"
	"time"
)

// headOfLine is the state of a stream whose oldest message the app has not acknowledged in time. A runtime that passes
// messages on one at a time cannot deliver the later ones, forever if the app hangs.
//
// So the stream sends nothing more. After another timeout, the messages behind the blocked one are released, for other
// receivers. A runtime that passes messages on all at once is not blocked; it proves that when it acknowledges a probe,
// a single message that is sent now and then. A probe that is not acknowledged is released too.
type headOfLine struct {
	message  *Message      // decided, but the app may still process it; nil: not blocked
	mayProbe bool          // one message may be sent as a probe
	interval time.Duration // until the next probe
}

const (
	defaultBlockTimeout = time.Minute // if the app has no timeout
	maxProbeInterval    = time.Hour   // between two probes, unless the timeout of the app is longer
)

// blockTimeout returns how long messages may stay behind a blocked one.
func (q *Queue) blockTimeout() time.Duration {
	return cmp.Or(q.handlerTimeout, defaultBlockTimeout)
}

// watchHead starts the timeout of the oldest message that the app may be processing, after the queue has changed. If
// the runtime passes messages on one at a time, the app has not seen the others yet.
func (q *Queue) watchHead() {
	head, blocked := q.processing(), (*Message)(nil)
	if head == nil && len(q.messages) > 0 && !q.window.isConcurrent {
		blocked = q.messages[0]
	}
	if head == q.watched && blocked == q.headOfLine.message {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	q.watched, q.headOfLine.message, q.headOfLine.mayProbe = head, blocked, false
	switch {
	case blocked != nil:
		q.block()
	case head != nil && q.handlerTimeout > 0:
		q.timer = after(q, q.handlerTimeout, func() { q.timeOut(head) })
	}
}

// processing returns the message that the app has been processing longest, as far as is known, or nil.
func (q *Queue) processing() *Message {
	for _, m := range q.messages {
		if !m.isDecided {
			return m
		}
		if !q.window.isConcurrent { // the app may still process it
			return nil
		}
	}
	return nil
}

// timeOut settles a message that the app has not acknowledged in time.
func (q *Queue) timeOut(m *Message) {
	if q.decide(m) {
		q.start(TimedOut, m)
	}
}

// block starts the timer for a queue that has become blocked.
func (q *Queue) block() {
	q.headOfLine.interval = q.blockTimeout()
	blocked, next := q.headOfLine.message, q.probe
	if len(q.undecided()) > 0 {
		next = q.releaseBlocked
	}
	q.timer = after(q, q.headOfLine.interval, func() { next(blocked) })
}

// probe permits one message.
func (q *Queue) probe(blocked *Message) {
	if q.headOfLine.message == blocked {
		q.headOfLine.mayProbe = true
		q.grant()
	}
}

// probeSent starts the timer of a probe that is about to be sent, if the message just added is one.
func (q *Queue) probeSent() {
	if !q.headOfLine.mayProbe {
		return
	}
	q.headOfLine.mayProbe = false
	q.grant()
	blocked := q.headOfLine.message
	q.timer = after(q, q.blockTimeout(), func() { q.releaseBlocked(blocked) })
}

// releaseBlocked returns the messages behind the blocked one, uncounted. The runtime still has them and may pass them
// on when the app recovers, but then its acknowledgment has no effect.
func (q *Queue) releaseBlocked(blocked *Message) {
	if q.headOfLine.message != blocked {
		return
	}
	for _, m := range q.undecided() {
		m.isDecided = true
		q.start(Returned, m)
	}
	q.grant()
	q.headOfLine.interval = min(2*q.headOfLine.interval, max(maxProbeInterval, q.blockTimeout()))
	q.timer = after(q, q.headOfLine.interval, func() { q.probe(blocked) })
}
