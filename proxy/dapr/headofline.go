package dapr

import (
	"cmp"
	"time"
)

// blockade is what a message does to a stream that the app has not answered in time: a runtime that hands on one after
// the other keeps behind it what comes later, and that for ever if the app hangs.
//
// So nothing is sent any more, what lies behind it goes back when the app has had its time once more, and others get
// that. A runtime that hands on all at once is not held up by it, and shows that by its answer to one message that is
// sent now and then to see. If there is no answer to that either, it goes back too.
type headOfLine struct {
	message  *outgoing // the moot one that the app may be working on still; nil: none
	mayProbe bool      // one message may go to see
	interval time.Duration
}

const (
	defaultBlockTimeout = time.Minute // the patience with an app that has all the time it likes
	maxProbeInterval    = time.Hour   // between two probes, unless the app's time is more than that
)

// patience is how long what lies behind the message that blocks may lie there.
func (p *pullStream) blockTimeout() time.Duration {
	return cmp.Or(p.settings.handlerTimeout, defaultBlockTimeout)
}

// block begins a blockade. The caller holds the mutex.
func (p *pullStream) blockQueue() {
	p.headOfLine.interval = p.blockTimeout()
	blocked, next := p.headOfLine.message, p.probe
	if len(p.undecided()) > 0 {
		next = p.releaseBlocked
	}
	p.timer = time.AfterFunc(p.headOfLine.interval, func() { next(blocked) })
}

// live gives what is out and not settled. The caller holds the mutex.
func (p *pullStream) undecided() []*outgoing {
	var live []*outgoing
	for _, o := range p.queue {
		if !o.isDecided {
			live = append(live, o)
		}
	}
	return live
}

// probe lets one message go.
func (p *pullStream) probe(blocked *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.headOfLine.message == blocked {
		p.headOfLine.mayProbe = true
		p.grant()
	}
}

// watchProbe lets the time of a probe run, which has just gone. The caller holds the mutex.
func (p *pullStream) probeSent() {
	if !p.headOfLine.mayProbe {
		return
	}
	p.headOfLine.mayProbe = false
	p.grant()
	blocked := p.headOfLine.message
	p.timer = time.AfterFunc(p.blockTimeout(), func() { p.releaseBlocked(blocked) })
}

// giveBack gives back, uncounted, what lies behind the message that blocks. The runtime has it all the same and hands
// it on when the app has come to itself, but that answer means nothing.
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
