package dapr

import (
	"context"
	"slices"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	gproto "google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// outgoing is a message that Dapr's runtime has, or is about to get, until it answers.
type outgoing struct {
	*semantics.Received

	sub       *stream.Subscription
	source    semantics.Source
	isSent    bool
	isDecided bool // what becomes of it is settled, or its lock is lost; the runtime has it all the same
}

// responseOf is what goes to Dapr's runtime. Its content type stays empty: with one the runtime would take the message
// for an event whose envelope is in the metadata.
func responseOf(topic string, m *semantics.Received) *proto.PullMessagesResponse {
	return &proto.PullMessagesResponse{
		Data:      m.Body,
		TopicName: topic,
		Metadata:  metadataOf(m),
		Id:        m.LockToken.String(),
	}
}

// take deals with what a subscription tells.
func (p *pullStream) handleEvent(ctx context.Context, sub *stream.Subscription, e stream.Event) {
	switch {
	case e.Delivery != nil:
		p.receiveRecovered()
		p.deliver(ctx, sub, e)
	case e.SessionClosed != nil:
		p.markLocksLost(func(o *outgoing) bool { return o.source.SessionLock == e.SessionClosed.Lock })
	case e.LocksLost != nil:
		p.markLocksLost(func(o *outgoing) bool { return slices.Contains(e.LocksLost, o.LockToken) })
	case e.Failure != nil:
		p.logger.WarnContext(
			ctx, "the subscription of Dapr's runtime gets no messages at the moment; it goes on by itself", "error",
			e.Failure,
		)
	}
}

// deliver sends messages, unless the stream is paused: then they go back.
func (p *pullStream) deliver(ctx context.Context, sub *stream.Subscription, e stream.Event) {
	sub.Delivered(ctx, e)
	p.metrics.Received(e.Delivery.Source(), len(e.Delivery.Messages))
	for _, m := range e.Delivery.Messages {
		o := &outgoing{Received: m, sub: sub, source: e.Delivery.Source()}
		response := responseOf(p.topic, m)
		if n := gproto.Size(response); n > maxDelivery {
			p.rejectTooLarge(ctx, o, n)
		} else if !p.send(o, response) {
			p.settleAsync(ctx, o, p.release())
		}
	}
}

// send sends one message. It reports false when the stream is paused. One that cannot be sent is given back at the end
// of the stream, which is near then.
func (p *pullStream) send(o *outgoing, response *proto.PullMessagesResponse) bool {
	p.mu.Lock()
	isPaused := p.isPaused
	if !isPaused && !p.isClosed {
		p.queue = append(p.queue, o)
		p.window.sent(len(p.queue))
		p.watchHead()
		p.probeSent()
	}
	p.mu.Unlock()
	if isPaused {
		return false
	}
	if p.stream.Send(response) == nil {
		p.mu.Lock()
		o.isSent = true
		p.mu.Unlock()
	}
	return true
}

// lose notes that the locks of messages are lost. An answer to them settles nothing any more.
func (p *pullStream) markLocksLost(isLost func(*outgoing) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.queue {
		if !o.isDecided && isLost(o) {
			o.isDecided = true
			p.metrics.DaprDeliveries.WithLabelValues(string(lockLost)).Inc()
		}
	}
	p.queueChanged()
}

// changed follows a change of what is out. The caller holds the mutex.
func (p *pullStream) queueChanged() {
	p.watchHead()
	p.grant()
}

// grant lets the subscription take as many messages as may be out, less those that it does not count itself. One that
// the app takes too long for may hold up what comes after it, so others get that. The caller holds the mutex.
func (p *pullStream) grant() {
	if p.sub == nil {
		return
	}
	credits := p.window.size
	for _, o := range p.queue {
		if o.isDecided || o.sub != p.sub {
			credits--
		}
	}
	switch {
	case p.headOfLine.message != nil && p.headOfLine.mayProbe:
		credits = 1
	case p.headOfLine.message != nil:
		credits = 0
	}
	if p.isPaused || p.isClosed {
		credits = 0
	}
	_ = p.sub.SetCredits(max(credits, 0)) // it is within the bounds
}

// watchHead lets the time of the message run that was sent first of those that are out. It is the one that the app
// works on if the runtime hands on one after the other; the others wait for it, and their time has not begun. The
// caller holds the mutex and has changed the queue.
func (p *pullStream) watchHead() {
	head, blocked := p.processing(), (*outgoing)(nil)
	if head == nil && len(p.queue) > 0 && !p.window.isConcurrent {
		blocked = p.queue[0]
	}
	if head == p.watched && blocked == p.headOfLine.message {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.watched, p.headOfLine.message, p.headOfLine.mayProbe = head, blocked, false
	switch timeout := p.settings.handlerTimeout; {
	case blocked != nil:
		p.blockQueue()
	case head != nil && timeout > 0:
		p.timer = time.AfterFunc(timeout, func() { p.handlerTimedOut(head) })
	}
}

// working gives the message that the app has been working on for longest, as far as that is known. nil: there is none.
// The caller holds the mutex.
func (p *pullStream) processing() *outgoing {
	for _, o := range p.queue {
		if !o.isDecided {
			return o
		}
		if !p.window.isConcurrent { // the app may be working on it still
			return nil
		}
	}
	return nil
}

// tooLate takes a message for failed that the app has not answered in its time.
func (p *pullStream) handlerTimedOut(o *outgoing) {
	if p.decide(o) {
		p.settleAsync(
			p.stream.Context(), o, p.abandon(o, timedOut, "no answer within "+p.settings.handlerTimeout.String()),
		)
	}
}

// makeMoot notes that what becomes of a message is being settled, unless that is so already.
func (p *pullStream) decide(o *outgoing) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.isDecided || p.isClosed || !slices.Contains(p.queue, o) {
		return false
	}
	o.isDecided = true
	p.queueChanged()
	return true
}

// carryOut settles a message beside what else is done. When the stream's account is closed, whoever closed it has done
// so.
func (p *pullStream) settleAsync(ctx context.Context, o *outgoing, v settlement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClosed {
		p.work.Go(func() { p.settleSafely(ctx, v, o) })
	}
}

// answered settles a message as Dapr's runtime says. An answer that comes too late means nothing.
func (p *pullStream) handleAck(ctx context.Context, id string, failure *proto.AckMessageError) {
	o := p.dequeue(id)
	if o == nil || o.isDecided {
		p.logger.DebugContext(ctx, "an answer of Dapr's runtime is to no message that waits for one", "id", cut(id))
		return
	}
	if failure == nil {
		p.queueCompletion(ctx, o)
		return
	}
	p.settleAsync(ctx, o, p.abandon(o, obs.Abandon, failure.GetMessage()))
}

// takeOut takes a message out of those that are out, because it is answered. nil: it is not among them.
func (p *pullStream) dequeue(id string) *outgoing {
	token, err := semantics.ParseLockToken(id)
	if err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.queue, func(o *outgoing) bool { return o.LockToken == token })
	if at < 0 || p.isClosed {
		return nil
	}
	o := p.queue[at]
	p.window.answered(at == 0, len(p.queue), time.Now())
	p.queue = slices.Delete(p.queue, at, at+1)
	p.queueChanged()
	return o
}

// refuse makes a dead letter of a message that Dapr's runtime cannot take: to send it would end the stream for good.
// One that is a dead letter already is left alone for long.
func (p *pullStream) rejectTooLarge(ctx context.Context, o *outgoing, bytes int) {
	p.logger.ErrorContext(
		ctx, "a message is too large for Dapr's runtime and is not sent", "sequenceNumber", o.SequenceNumber,
		"messageId", o.MessageID, "bytes", bytes, "limit", maxDelivery,
	)
	p.settleAsync(ctx, o, p.tooLarge(o, bytes))
}

// finish ends the stream's account: no answer counts any more, and those that came are carried out. It gives back what
// the runtime still has. A runtime that is gone with its connection has failed with it; one that has ended the stream
// has not begun with it.
func (p *pullStream) closeQueue(ctx context.Context) {
	p.mu.Lock()
	rest := p.undecided()
	p.isClosed, p.queue = true, nil
	p.watchHead()
	p.flushCompletions(ctx)
	p.mu.Unlock()
	isLost := lostConnection(p.stream.Context())
	for _, o := range rest {
		v := p.release()
		if isLost && o.isSent {
			v = p.abandonFor(nil, obs.Abandon, "Dapr's runtime is gone")
		}
		p.work.Go(func() { p.settleSafely(ctx, v, o) })
	}
	p.work.Wait()
}

// giveUp makes a dead letter of a message that is out, because Dapr's runtime publishes it to the dead letters of its
// entity.
func (c *component) deadLetterDelivered(ctx context.Context, topic string, token semantics.LockToken) error {
	p, o := c.findUndecided(token)
	if o == nil {
		return semantics.Errorf(semantics.MessageLockLost, "the message is not out any more; it comes again").
			With(semantics.DetailEntity, cut(topic))
	}
	address, err := sourceOf(topic, p.settings)
	if err != nil {
		return err
	}
	if semantics.Fold(address.Path) != semantics.Fold(o.source.Path) || o.source.SubQueue.IsDeadLetters() {
		return semantics.Errorf(semantics.InvalidOperation,
			"%q takes only what a subscription to its queue or topic gives up", cut(topic)).
			With(semantics.DetailEntity, cut(topic))
	}
	codes, err := o.sub.Settle(ctx, []semantics.LockToken{token}, p.givenUp().settle)
	if err == nil && codes[0] != "" {
		err = semantics.Errorf(codes[0], "the message is not locked any more; it comes again").
			With(semantics.DetailEntity, cut(topic))
	}
	if err != nil {
		return err
	}
	p.decide(o)
	p.count(o, obs.DeadLetter, obs.DeadLetter)
	return nil
}

// findOut finds a message that a stream has out.
func (c *component) findUndecided(token semantics.LockToken) (*pullStream, *outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.instances {
		for p := range i.pulls {
			if o := p.find(token); o != nil {
				return p, o
			}
		}
	}
	return nil, nil
}

func (p *pullStream) find(token semantics.LockToken) *outgoing {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.queue, func(o *outgoing) bool { return o.LockToken == token && !o.isDecided })
	if at < 0 {
		return nil
	}
	return p.queue[at]
}
