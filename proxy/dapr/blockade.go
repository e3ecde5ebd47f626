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
type blockade struct {
	blocked  *outgoing // the moot one that the app may be working on still; nil: none
	mayProbe bool      // one message may go to see
	rest     time.Duration
}

const (
	noTimeout = time.Minute // the patience with an app that has all the time it likes
	mostRest  = time.Hour   // between two probes, unless the app's time is more than that
)

// patience is how long what lies behind the message that blocks may lie there.
func (p *pull) patience() time.Duration { return cmp.Or(p.settings.handlerTimeout, noTimeout) }

// block begins a blockade. The caller holds the mutex.
func (p *pull) block() {
	p.blockade.rest = p.patience()
	blocked, next := p.blockade.blocked, p.probe
	if len(p.live()) > 0 {
		next = p.giveBack
	}
	p.timer = time.AfterFunc(p.blockade.rest, func() { next(blocked) })
}

// live gives what is out and not settled. The caller holds the mutex.
func (p *pull) live() []*outgoing {
	var live []*outgoing
	for _, o := range p.queue {
		if !o.isMoot {
			live = append(live, o)
		}
	}
	return live
}

// probe lets one message go.
func (p *pull) probe(blocked *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blockade.blocked == blocked {
		p.blockade.mayProbe = true
		p.grant()
	}
}

// watchProbe lets the time of a probe run, which has just gone. The caller holds the mutex.
func (p *pull) watchProbe() {
	if !p.blockade.mayProbe {
		return
	}
	p.blockade.mayProbe = false
	p.grant()
	blocked := p.blockade.blocked
	p.timer = time.AfterFunc(p.patience(), func() { p.giveBack(blocked) })
}

// giveBack gives back, uncounted, what lies behind the message that blocks. The runtime has it all the same and hands
// it on when the app has come to itself, but that answer means nothing.
func (p *pull) giveBack(blocked *outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blockade.blocked != blocked || p.isOver {
		return
	}
	for _, o := range p.live() {
		o.isMoot = true
		p.work.Go(func() { p.settleSafely(p.stream.Context(), p.release(), o) })
	}
	p.grant()
	p.blockade.rest = min(2*p.blockade.rest, max(mostRest, p.patience()))
	p.timer = time.AfterFunc(p.blockade.rest, func() { p.probe(blocked) })
}
