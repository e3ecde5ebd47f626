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

// outgoing is a message that the Dapr runtime has, or is about to get, and has not acknowledged.
type outgoing struct {
	*semantics.Received

	sub       *stream.Subscription
	source    semantics.Source
	isSent    bool
	isDecided bool // it is settled or being settled, or its lock is lost; the runtime still has it
}

// responseOf returns the message for the Dapr runtime. It leaves the content type empty: otherwise the runtime would
// expect a cloud event whose envelope is in the metadata.
func responseOf(topic string, m *semantics.Received) *proto.PullMessagesResponse {
	return &proto.PullMessagesResponse{
		Data:      m.Body,
		TopicName: topic,
		Metadata:  metadataOf(m),
		Id:        m.LockToken.String(),
	}
}

// handleEvent handles an event of the subscription.
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
			ctx, "the Dapr subscription cannot receive at the moment; retrying", "error",
			e.Failure,
		)
	}
}

// deliver sends the messages of an event. If the stream is paused, it releases them.
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

// send sends one message and reports whether the stream is not paused. If sending fails, the stream is about to end and
// then releases the message.
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

// markLocksLost notes that the locks of messages are lost. Acknowledgments of them have no effect.
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

// queueChanged updates the timer and the credits after the queue has changed. The caller holds the mutex.
func (p *pullStream) queueChanged() {
	p.watchHead()
	p.grant()
}

// grant sets the credits of the subscription to the size of the window. It subtracts messages that the subscription
// does not count. While the queue is blocked, it grants none, or one for a probe. The caller holds the mutex.
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
	_ = p.sub.SetCredits(max(credits, 0)) // never out of range
}

// watchHead starts the timeout of the oldest message that the app may be processing. If the runtime passes messages on
// one at a time, the app has not seen the others yet. The caller holds the mutex and has changed the queue.
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

// processing returns the message that the app has been processing longest, as far as is known, or nil. The caller holds
// the mutex.
func (p *pullStream) processing() *outgoing {
	for _, o := range p.queue {
		if !o.isDecided {
			return o
		}
		if !p.window.isConcurrent { // the app may still process it
			return nil
		}
	}
	return nil
}

// handlerTimedOut abandons a message that the app has not acknowledged in time.
func (p *pullStream) handlerTimedOut(o *outgoing) {
	if p.decide(o) {
		p.settleAsync(
			p.stream.Context(), o, p.abandon(o, timedOut, "no acknowledgment within "+p.settings.handlerTimeout.String()),
		)
	}
}

// decide marks a message as decided. It reports false if it was decided before.
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

// settleAsync settles a message in a goroutine. It does nothing if the queue is closed: then closeQueue has settled it.
func (p *pullStream) settleAsync(ctx context.Context, o *outgoing, v settlement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClosed {
		p.work.Go(func() { p.settleSafely(ctx, v, o) })
	}
}

// handleAck settles a message as the Dapr runtime says. A late acknowledgment has no effect.
func (p *pullStream) handleAck(ctx context.Context, id string, failure *proto.AckMessageError) {
	o := p.dequeue(id)
	if o == nil || o.isDecided {
		p.logger.DebugContext(ctx, "acknowledgment of an unknown or decided message", "id", cut(id))
		return
	}
	if failure == nil {
		p.queueCompletion(ctx, o)
		return
	}
	p.settleAsync(ctx, o, p.abandon(o, obs.Abandon, failure.GetMessage()))
}

// dequeue removes an acknowledged message from the queue and returns it, or nil if it is not there.
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

// rejectTooLarge dead-letters a message that the Dapr runtime cannot receive: sending it would end the stream for good.
// A message that is a dead letter already is delayed instead.
func (p *pullStream) rejectTooLarge(ctx context.Context, o *outgoing, bytes int) {
	p.logger.ErrorContext(
		ctx, "a message is too large for the Dapr runtime and is not sent", "sequenceNumber", o.SequenceNumber,
		"messageId", o.MessageID, "bytes", bytes, "limit", maxDelivery,
	)
	p.settleAsync(ctx, o, p.tooLarge(o, bytes))
}

// closeQueue ends the queue: later acknowledgments have no effect, and earlier ones are settled. It abandons what the
// runtime had received if the connection is lost, because the app may have begun; otherwise it releases it.
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
			v = p.abandonFor(nil, obs.Abandon, "the connection to the Dapr runtime was lost")
		}
		p.work.Go(func() { p.settleSafely(ctx, v, o) })
	}
	p.work.Wait()
}

// deadLetterDelivered dead-letters a message that was delivered, because the Dapr runtime publishes it to the
// dead-letter queue of its entity.
func (c *component) deadLetterDelivered(ctx context.Context, topic string, token semantics.LockToken) error {
	p, o := c.findUndecided(token)
	if o == nil {
		return semantics.Errorf(semantics.MessageLockLost, "the message is no longer delivered to this runtime; it will be delivered again").
			With(semantics.DetailEntity, cut(topic))
	}
	address, err := sourceOf(topic, p.settings)
	if err != nil {
		return err
	}
	if semantics.Fold(address.Path) != semantics.Fold(o.source.Path) || o.source.SubQueue.IsDeadLetters() {
		return semantics.Errorf(semantics.InvalidOperation,
			"%q accepts only messages that a subscription to the same queue or topic dead-letters; set it as deadLetterTopic of that one", cut(topic)).
			With(semantics.DetailEntity, cut(topic))
	}
	codes, err := o.sub.Settle(ctx, []semantics.LockToken{token}, p.givenUp().settle)
	if err == nil && codes[0] != "" {
		err = semantics.Errorf(codes[0], "the message is no longer locked; it will be delivered again").
			With(semantics.DetailEntity, cut(topic))
	}
	if err != nil {
		return err
	}
	p.decide(o)
	p.count(o, obs.DeadLetter, obs.DeadLetter)
	return nil
}

// findUndecided finds a delivered message in all streams.
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
