package dapr

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
	message  *outgoing     // decided, but the app may still process it; nil: not blocked
	mayProbe bool          // one message may be sent as a probe
	interval time.Duration // until the next probe
}

const (
	defaultBlockTimeout = time.Minute // if the app has no timeout
	maxProbeInterval    = time.Hour   // between two probes, unless the timeout of the app is longer
)

// blockTimeout returns how long messages may stay behind a blocked one.
func (p *pullStream) blockTimeout() time.Duration {
	return cmp.Or(p.settings.handlerTimeout, defaultBlockTimeout)
}

// blockQueue starts the timer for a queue that has become blocked. The caller holds the mutex.
func (p *pullStream) blockQueue() {
	p.headOfLine.interval = p.blockTimeout()
	blocked, next := p.headOfLine.message, p.probe
	if len(p.undecided()) > 0 {
		next = p.releaseBlocked
	}
	p.timer = time.AfterFunc(p.headOfLine.interval, func() { next(blocked) })
}

// undecided returns the sent messages whose outcome is open. The caller holds the mutex.
func (p *pullStream) undecided() []*outgoing {
	var live []*outgoing
	for _, o := range p.queue {
		if !o.isDecided {
			live = append(live, o)
		}
	}
	return live
}

// probe permits one message.
func (p *pullStream) probe(blocked *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.headOfLine.message == blocked {
		p.headOfLine.mayProbe = true
		p.grant()
	}
}

// probeSent starts the timer of a probe that was just sent. The caller holds the mutex.
func (p *pullStream) probeSent() {
	if !p.headOfLine.mayProbe {
		return
	}
	p.headOfLine.mayProbe = false
	p.grant()
	blocked := p.headOfLine.message
	p.timer = time.AfterFunc(p.blockTimeout(), func() { p.releaseBlocked(blocked) })
}

// releaseBlocked releases the messages behind the blocked one, uncounted. The runtime still has them and may pass them
// on when the app recovers, but then its acknowledgment has no effect.
func (p *pullStream) releaseBlocked(blocked *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.headOfLine.message != blocked || p.isClosed {
		return
	}
	for _, o := range p.undecided() {
		o.isDecided = true
		p.work.Go(func() { p.settleSafely(p.stream.Context(), p.release(), o) })
	}
	p.grant()
	p.headOfLine.interval = min(2*p.headOfLine.interval, max(maxProbeInterval, p.blockTimeout()))
	p.timer = time.AfterFunc(p.headOfLine.interval, func() { p.probe(blocked) })
}
