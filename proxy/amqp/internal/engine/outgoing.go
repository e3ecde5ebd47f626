package engine

import (
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// Want is what the client wants of a link on which it receives.
type Want struct {
	Credit int
	// IsDraining: the client wants what is there, and then an answer, see Drained.
	IsDraining bool
	// Withdrawn is closed when the client wants less, or begins to drain.
	Withdrawn <-chan struct{}
}

// Wanted waits until the client wants something. It reports false when the link is over.
func (l *Link) Wanted() (Want, bool) {
	c := l.session.conn
	for {
		c.mu.Lock()
		l.prune()
		window := l.session.remoteWindow // what exceeds it would wait here while its lock runs out
		isReady := l.credit > 0 && l.unsettled < maxUnsettled && window > 0 || l.isDraining
		want := Want{
			Credit: min(int(l.credit), maxUnsettled-l.unsettled, int(window)), IsDraining: l.isDraining,
			Withdrawn: l.withdrawn.wait(),
		}
		isOver, changed := l.isOver || l.isClosed, l.changed.wait()
		var recheck <-chan time.Time
		if l.credit > 0 && !isReady {
			recheck = time.After(c.config.RecheckAfter)
		}
		c.mu.Unlock()
		if isOver || isReady {
			return want, !isOver
		}
		select {
		case <-changed:
		case <-recheck:
		case <-l.ctx.Done():
			return want, false
		}
	}
}

// prune forgets deliveries that are over, if the client has not settled too many.
func (l *Link) prune() {
	if l.unsettled < maxUnsettled || l.accepted == nil || l.accepted.IsOver == nil {
		return
	}
	for id, o := range l.session.unsettled {
		if o.link == l && l.accepted.IsOver(o.ref) {
			delete(l.session.unsettled, id)
			l.unsettled--
		}
	}
}

// Drained answers a client that drains: there is nothing more.
func (l *Link) Drained() {
	l.session.conn.mu.Lock()
	defer l.session.conn.mu.Unlock()
	if l.isOver || l.isClosed || !l.isDraining {
		return
	}
	l.deliveryCount += l.credit
	l.credit = 0
	l.session.sendFlow(l)
	l.isDraining = false
}

// Delivery is a message for the client.
type Delivery struct {
	Tag     []byte
	Payload []byte
	// IsSettled: the client is not to settle it. Otherwise OnSettled gets Ref back.
	IsSettled bool
	Ref       any
}

// transferHead is more than what a transfer takes of a frame besides its payload.
const transferHead = 128

// Send sends a message, in as many frames as it needs. It waits for the window of the session and for memory. It
// reports false if the message was not sent completely: the link is over, or has no credit any more, or the window
// stays closed.
func (l *Link) Send(d Delivery) bool {
	s := l.session
	c := s.conn
	if !l.awaitWindow(true) {
		return false
	}
	// the mutex is locked
	defer c.mu.Unlock()
	id := s.nextDelivery
	s.nextDelivery++
	l.credit--
	l.deliveryCount++
	if !d.IsSettled {
		s.unsettled[id] = &outgoing{link: l, ref: d.Ref}
		l.unsettled++
	}
	format := uint32(0)
	t := &frame.Transfer{
		Handle: l.handle, DeliveryID: &id, DeliveryTag: d.Tag, MessageFormat: &format, Settled: d.IsSettled,
	}
	rest := d.Payload
	for {
		piece := rest[:min(len(rest), c.maxFrame-transferHead)]
		rest = rest[len(piece):]
		t.More = len(rest) > 0
		s.nextOutgoing++
		s.remoteWindow--
		c.send(frame.Frame{Channel: s.channel, Body: t, Payload: piece})
		if !t.More {
			return true
		}
		c.mu.Unlock()
		if !l.awaitWindow(false) {
			c.mu.Lock()
			return false
		}
		t = &frame.Transfer{Handle: l.handle, Settled: d.IsSettled}
	}
}

// awaitWindow waits until one more frame may be sent, and locks the mutex then. It reports false, without the mutex, if
// the link is over, has no credit for the first frame of a message, or waits for too long, which closes it within a
// message.
func (l *Link) awaitWindow(isFirst bool) bool {
	s := l.session
	c := s.conn
	var stalled <-chan time.Time
	for {
		c.mu.Lock()
		var changed <-chan struct{}
		switch {
		case l.isOver, l.isClosed, c.isClosing, isFirst && l.credit == 0:
			c.mu.Unlock()
			return false
		case s.remoteWindow == 0:
			changed = l.changed.wait()
			if stalled == nil {
				timer := time.NewTimer(c.config.StallAfter)
				defer timer.Stop()
				stalled = timer.C
			}
		case len(c.out) > maxOutput:
			changed = c.flushed.wait()
		default:
			return true
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-stalled:
			if !isFirst {
				l.Close(&frame.Error{Condition: limitExceeded, Description: "the window of the session is closed for too long"})
			}
			return false
		case <-l.ctx.Done():
			return false
		}
	}
}

// Flushed waits until the connection has taken all that was sent so far, and reports whether it has.
func (l *Link) Flushed() bool {
	c := l.session.conn
	c.mu.Lock()
	until := c.appended
	for c.written < until {
		changed := c.flushed.wait()
		c.mu.Unlock()
		select {
		case <-changed:
		case <-c.ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.written >= until
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	return true
}

// Release notes that the Service has run settlements, so that they take no memory any more.
func (l *Link) Release(all []Settlement) {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range all {
		c.queued -= one.held
	}
	c.settled.fire()
}

// Acknowledge answers settlements of the client, with the state of each.
func (l *Link) Acknowledge(all []Settlement, state frame.State) {
	l.session.conn.mu.Lock()
	defer l.session.conn.mu.Unlock()
	if l.isOver || l.isClosed {
		return
	}
	for first := 0; first < len(all); {
		last := first
		for last+1 < len(all) && all[last+1].ID == all[last].ID+1 {
			last++
		}
		l.session.send(&frame.Disposition{First: all[first].ID, Last: all[last].ID, Settled: true, State: state})
		first = last + 1
	}
}
