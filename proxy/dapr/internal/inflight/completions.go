package inflight

import (
	"math/rand/v2"
	"time"
)

// Messages of a busy stream are completed in batches, and as many are then received in one call, which costs the store
// far less than single calls.
const (
	batchPeriod = 20 * time.Millisecond // completions wait for others until it ends
	// 1/batchShare of the window may wait for a batch, so that the app does not run out of messages
	batchShare = 4
	maxBatch   = 100
)

// batchPhase is where this process is in a period. Its streams end their batches at the same instants, so that the
// store completes them in one script; those of other processes at others.
var batchPhase = rand.N(batchPeriod) //nolint:gosec // no secret

// completionBatch has acknowledged messages that are not completed yet.
type completionBatch struct {
	done  []*Message
	timer *time.Timer
}

// complete completes a message, in a batch if the app has more to do. Messages of sessions are completed at once,
// because the next message of the session waits for it.
func (q *Queue) complete(m *Message) {
	q.completions.done = append(q.completions.done, m)
	switch enough := min(q.window.Size()/batchShare, maxBatch); {
	case m.Sub.HasSessions() || len(q.messages) == 0 || len(q.completions.done) >= enough:
		q.flush()
	case q.completions.timer == nil:
		q.completions.timer = after(q, untilBatch(time.Now()), q.flush)
	}
}

// untilBatch returns how long a period still lasts.
func untilBatch(now time.Time) time.Duration {
	return batchPeriod - (time.Duration(now.UnixNano())+batchPhase)%batchPeriod
}

// flush completes the messages that wait.
func (q *Queue) flush() {
	if t := q.completions.timer; t != nil {
		t.Stop()
	}
	done := q.completions.done
	q.completions = completionBatch{}
	for len(done) > 0 {
		n := 1
		for n < len(done) && done[n].Sub == done[0].Sub {
			n++
		}
		q.start(Processed, done[:n]...)
		done = done[n:]
	}
}
