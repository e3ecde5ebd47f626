package dapr

import (
	"context"
	"time"
)

// Messages of a busy stream are completed in batches, and as many are then received in one call, which costs the store
// far less than single calls.
const (
	batchDelay = 5 * time.Millisecond // how long the first completion waits for others
	// 1/batchShare of the window may wait for a batch, so that the app does not run out of messages
	batchShare = 8
	maxBatch   = 100
)

// completionBatch has acknowledged messages that are not completed yet. The mutex of the stream guards it.
type completionBatch struct {
	done  []*outgoing
	timer *time.Timer
}

// queueCompletion completes a message, in a batch if the app has more to do. Messages of sessions are completed at
// once, because the next message of the session waits for it.
func (p *pullStream) queueCompletion(ctx context.Context, o *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return
	}
	p.completions.done = append(p.completions.done, o)
	switch enough := min(p.window.size/batchShare, maxBatch); {
	case o.sub.HasSessions() || len(p.queue) == 0 || len(p.completions.done) >= enough:
		p.flushCompletions(ctx)
	case p.completions.timer == nil:
		p.completions.timer = time.AfterFunc(batchDelay, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.flushCompletions(ctx)
		})
	}
}

// flushCompletions completes the messages that wait. The caller holds the mutex.
func (p *pullStream) flushCompletions(ctx context.Context) {
	if t := p.completions.timer; t != nil {
		t.Stop()
	}
	done := p.completions.done
	p.completions = completionBatch{}
	for len(done) > 0 {
		n := 1
		for n < len(done) && done[n].sub == done[0].sub {
			n++
		}
		batch := done[:n]
		done = done[n:]
		p.work.Go(func() { p.settleSafely(ctx, p.complete(), batch...) })
	}
}
