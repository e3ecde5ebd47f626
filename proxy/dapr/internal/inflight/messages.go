package inflight

import (
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Message is a message that the Dapr runtime has, or is about to get, and has not acknowledged.
type Message struct {
	*semantics.Received

	Source semantics.Source
	Sub    *stream.Subscription // that it came from

	isSent    bool
	isDecided bool // it is settled or being settled, or its lock is lost; the runtime still has it
}

// Add adds a message and reports whether to send it. While the stream is paused, it settles the message as Returned.
func (q *Queue) Add(m *Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.isClosed:
		return false
	case q.isPaused:
		q.start(Returned, m)
		return false
	}
	q.messages = append(q.messages, m)
	q.window.Sent(len(q.messages))
	q.watchHead()
	q.probeSent()
	return true
}

// Sent notes that a message was sent.
func (q *Queue) Sent(m *Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m.isSent = true
}

// Complete completes an acknowledged message. It reports false if the message is unknown or was decided before: then
// the acknowledgment has no effect.
func (q *Queue) Complete(token semantics.LockToken) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.remove(token)
	if m != nil {
		q.complete(m)
	}
	return m != nil
}

// Fail calls settle, in a goroutine, for a message that the app failed. It reports false as Complete does.
func (q *Queue) Fail(token semantics.LockToken, settle func(*Message)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.remove(token)
	if m != nil {
		q.Settlements.start(func() { settle(m) })
	}
	return m != nil
}

// Reject calls settle, in a goroutine, for a message that is not sent. It does nothing if the queue is closed: then the
// subscription is about to release the message.
func (q *Queue) Reject(settle func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed {
		q.Settlements.start(settle)
	}
}

// LocksLost notes that the locks of messages are lost, and returns of how many whose outcome was open. Acknowledgments
// of them have no effect.
func (q *Queue) LocksLost(isLost func(*Message) bool) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.undecided() {
		if isLost(m) {
			m.isDecided = true
			n++
		}
	}
	q.changed()
	return n
}

// Find returns the message with a lock token whose outcome is open, or nil.
func (q *Queue) Find(token semantics.LockToken) *Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.undecided() {
		if m.LockToken == token {
			return m
		}
	}
	return nil
}

// Settled notes that a message was settled without an acknowledgment.
func (q *Queue) Settled(m *Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.decide(m)
}

// remove takes an acknowledged message out of the queue. It returns nil if the message is not there or decided.
func (q *Queue) remove(token semantics.LockToken) *Message {
	at := slices.IndexFunc(q.messages, func(m *Message) bool { return m.LockToken == token })
	if at < 0 {
		return nil
	}
	m := q.messages[at]
	q.window.Answered(at == 0, len(q.messages), time.Now())
	q.messages = slices.Delete(q.messages, at, at+1)
	q.changed()
	if m.isDecided {
		return nil
	}
	return m
}

// decide marks a message as decided. It reports false if it was decided before or is not in the queue.
func (q *Queue) decide(m *Message) bool {
	if m.isDecided || !slices.Contains(q.messages, m) {
		return false
	}
	m.isDecided = true
	q.changed()
	return true
}

// undecided returns the messages whose outcome is open.
func (q *Queue) undecided() []*Message {
	var live []*Message
	for _, m := range q.messages {
		if !m.isDecided {
			live = append(live, m)
		}
	}
	return live
}
