package semantics

import (
	"context"
	"time"
)

// Bounds of a request (RR-6).
const (
	DefaultRequestTimeout = time.Minute
	MaxRequestTimeout     = 5 * time.Minute
)

// Request sends message to target and waits for the reply to it, at most for timeout (RR-6). The reply is what somebody sends to
// the queue replyTo, into the session that the request's ReplyToSessionID names, with the request's CorrelationID, or else its
// MessageID, as CorrelationID (RR-3). That session is the Broker's own and is held before the request is sent (RR-4). The
// request lives no longer than timeout, so that nobody begins it in vain.
//
// It gives what Send gave, also when no reply came, and the reply. The reply is completed by Delivered and given back by
// Undelivered, as after a receive in ReceiveAndDelete mode; the caller must call exactly one of them. One that was given back, and
// one that comes too late, goes to a request that waits for it then, and else is an orphan: completed and counted.
//
// It is safe to call at the same time for any queues. SERVICE_TIMEOUT when no reply came in time; INVALID_OPERATION when another
// request waits for the same reply; INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE; ENTITY_NOT_FOUND, ENTITY_DISABLED and
// SESSION_NOT_SUPPORTED for replyTo, SESSION_CANNOT_BE_LOCKED when the session there is blocked; those of Send; STORE_UNAVAILABLE
// with cause "draining" when the Broker drains; CANCELLED. A failure after the request was sent has outcome "unknown": somebody
// may do what was asked for.
func (b *Broker) Request(ctx context.Context, target Target, replyTo string, message *Message, timeout time.Duration) ([]SendResult, *Delivery, error) {
	r, err := b.prepareRequest(target, replyTo, message, timeout)
	if err != nil {
		return nil, nil, err
	}
	call := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sent, delivery, err := b.ask(ctx, r)
	if CodeOf(err) == Cancelled && call.Err() == nil {
		err = noReply(err, r.replyTo, timeout)
	}
	return sent, delivery, err
}

// request is a Request that was checked and paid for.
type request struct {
	target  Target
	replyTo string
	message *Message
	results []SendResult // of prepare
}

// ask is Request within the time that ctx has.
func (b *Broker) ask(ctx context.Context, r *request) ([]SendResult, *Delivery, error) {
	a, ready, err := b.requests.enter(ctx, r.replyTo, keyOf(r.message))
	if err != nil {
		return nil, nil, err
	}
	if delivery, err := a.wait(ctx, ready); delivery != nil || err != nil {
		return nil, delivery, err
	}
	a.send()
	sent, err := b.sendPrepared(ctx, r.target, []*Message{r.message}, r.results)
	if err != nil && a.leave() {
		return nil, nil, err
	}
	delivery, err := a.wait(ctx, nil)
	if err != nil {
		err = AsError(err).With(DetailOutcome, OutcomeUnknown)
	}
	return sent, delivery, err
}

// keyOf is the correlation id that the reply to a request has (RR-3).
func keyOf(request *Message) string {
	if request.CorrelationID != "" {
		return request.CorrelationID
	}
	return request.MessageID
}

// prepareRequest checks a request, gives its message what the worker needs, and pays for it.
func (b *Broker) prepareRequest(target Target, replyTo string, message *Message, timeout time.Duration) (*request, error) {
	target, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	replyTo, err = ParsePath(replyTo)
	if err != nil {
		return nil, AsError(err).With(DetailField, "replyTo")
	}
	if timeout < time.Millisecond || timeout > MaxRequestTimeout {
		return nil, fieldError(ArgumentOutOfRange, "timeout", "is %s, must be 1ms to %s", timeout, MaxRequestTimeout)
	}
	for _, own := range []struct{ field, value string }{
		{"message.replyTo", message.ReplyTo}, {"message.replyToSessionId", message.ReplyToSessionID},
	} {
		if own.value != "" {
			return nil, fieldError(InvalidArgument, own.field, "must be left out; the request sets it")
		}
	}
	if !message.ScheduledAt.IsZero() {
		return nil, fieldError(InvalidArgument, "message.scheduledEnqueueTime", "must be left out; a request that somebody waits for is sent at once")
	}
	m := *message
	m.ReplyTo, m.ReplyToSessionID = replyTo, b.requests.session
	if m.TimeToLive == nil || *m.TimeToLive > timeout {
		m.TimeToLive = &timeout
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	results, err := b.prepare([]*Message{&m})
	return &request{target: target, replyTo: replyTo, message: &m, results: results}, err
}

func noReply(err error, path string, timeout time.Duration) *Error {
	e := Errorf(ServiceTimeout, "no reply came to %q within %s", path, timeout).With(DetailEntity, path)
	if outcome := AsError(err).Details[DetailOutcome]; outcome != "" {
		e = e.With(DetailOutcome, outcome)
	}
	return e
}

// OrphanReplies is how many replies this Broker has completed for which nobody waited (RR-6).
func (b *Broker) OrphanReplies() int64 { return b.requests.orphans.Load() }
