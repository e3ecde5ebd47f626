package dapr

import (
	"context"
	"time"
)

// Completions of a busy stream are carried out together, and then as many messages are taken together, which costs the
// store far less than one by one.
const (
	batchDelay = 5 * time.Millisecond // how long the first one waits for others
	// of what may be out as many as one in so many may wait, so that the app has enough to do meanwhile
	batchShare = 8
	maxBatch   = 100
)

// completions are messages that the app has done, until they are carried out. Its fields are under the mutex of the
// stream.
type completionBatch struct {
	done  []*outgoing
	timer *time.Timer
}

// completeSoon completes a message, together with others if the app has more to do. What is of a session is completed
// at once, because the next one of the session waits for it.
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

// completeNow carries out the completions that wait. The caller holds the mutex.
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
		together := done[:n]
		done = done[n:]
		p.work.Go(func() { p.settleSafely(ctx, p.complete(), together...) })
	}
}
