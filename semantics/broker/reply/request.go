package reply

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Bounds of a request (RR-6).
const (
	DefaultRequestTimeout = time.Minute
	MaxRequestTimeout     = 5 * time.Minute
)

// Request sends message to target and waits for the reply to it, at most for timeout (RR-6). The reply is what the
// responder sends to the queue replyTo, into the session that the request's ReplyToSessionID names, with the request's
// CorrelationID, or else its MessageID, as CorrelationID (RR-3). That session is the Broker's own and is held before
// the request is sent (RR-4). The request lives no longer than timeout, so that no responder starts it in vain.
//
// It returns what Send returned, also when no reply came, and the reply. The reply is completed by Delivered and given
// back by Undelivered, as after a receive in ReceiveAndDelete mode; the caller must call exactly one of them. One that
// was given back, and one that comes too late, goes to a request that waits for it then, and else is an orphan:
// completed and counted.
//
// It is safe to call at the same time for any queues. SERVICE_TIMEOUT when no reply came in time; INVALID_OPERATION
// when another request waits for the same reply; INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE; ENTITY_NOT_FOUND,
// ENTITY_DISABLED and SESSION_NOT_SUPPORTED for replyTo, SESSION_CANNOT_BE_LOCKED when the session there is blocked;
// those of Send; STORE_UNAVAILABLE with cause "draining" when the Broker drains; CANCELLED. A failure after the request
// was sent has outcome "unknown": a responder may process the request.
func (r *Requests) Request(
	ctx context.Context, target semantics.Target, replyTo string, message *semantics.Message, timeout time.Duration,
) ([]semantics.SendResult, *delivery.Delivery, error) {
	if err := semantics.MemoryOf(ctx).Take(0, false); err != nil {
		return nil, nil, err
	}
	q, err := r.prepare(target, replyTo, message, timeout)
	if err != nil {
		return nil, nil, err
	}
	call := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sent, taken, err := r.ask(ctx, q)
	if semantics.CodeOf(err) == semantics.Cancelled && call.Err() == nil {
		err = noReply(err, q.replyTo, timeout)
	}
	if taken != nil {
		_ = semantics.MemoryOf(call).Take(semantics.AnswerSize(taken.Messages), true) // what was asked for was done
	}
	return sent, taken, err
}

// request is a Request that was checked and paid for.
type request struct {
	target  semantics.Target
	replyTo string
	message *semantics.Message
	results []semantics.SendResult // of prepare
}

// ask is Request within the time that ctx has.
func (r *Requests) ask(ctx context.Context, q *request) ([]semantics.SendResult, *delivery.Delivery, error) {
	a, ready, err := r.enter(ctx, q.replyTo, keyOf(q.message))
	if err != nil {
		return nil, nil, err
	}
	if taken, err := a.wait(ctx, ready); taken != nil || err != nil {
		return nil, taken, err
	}
	a.send()
	sent, err := r.broker.Send(ctx, q.target, q.message, q.results)
	if err != nil && a.leave() {
		return nil, nil, err
	}
	taken, err := a.wait(ctx, nil)
	if err != nil {
		err = semantics.AsError(err).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	}
	return sent, taken, err
}

// keyOf is the correlation id that the reply to a request has (RR-3).
func keyOf(request *semantics.Message) string {
	if request.CorrelationID != "" {
		return request.CorrelationID
	}
	return request.MessageID
}

// prepare checks a request, adds what the worker needs to its message, and pays for it.
func (r *Requests) prepare(
	target semantics.Target, replyTo string, message *semantics.Message, timeout time.Duration,
) (*request, error) {
	target, err := target.Parse()
	if err != nil {
		return nil, err
	}
	replyTo, err = semantics.ParsePath(replyTo)
	if err != nil {
		return nil, semantics.AsError(err).With(semantics.DetailField, "replyTo")
	}
	if timeout < time.Millisecond || timeout > MaxRequestTimeout {
		return nil, semantics.FieldError(
			semantics.ArgumentOutOfRange, "timeout", "is %s, must be 1ms to %s", timeout, MaxRequestTimeout,
		)
	}
	for _, own := range []struct{ field, value string }{
		{"message.replyTo", message.ReplyTo}, {"message.replyToSessionId", message.ReplyToSessionID},
	} {
		if own.value != "" {
			return nil, semantics.InvalidField(own.field, "must be left out; the request sets it")
		}
	}
	if !message.ScheduledAt.IsZero() {
		return nil, semantics.InvalidField(
			"message.scheduledEnqueueTime", "must be left out; a request that is waited for is sent at once",
		)
	}
	m := *message
	m.ReplyTo, m.ReplyToSessionID = replyTo, r.session
	if m.TimeToLive == nil || *m.TimeToLive > timeout {
		m.TimeToLive = &timeout
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := r.draining(); err != nil {
		return nil, err
	}
	results, err := r.broker.Prepare(&m)
	return &request{target: target, replyTo: replyTo, message: &m, results: results}, err
}

func noReply(err error, path string, timeout time.Duration) *semantics.Error {
	e := semantics.Errorf(semantics.ServiceTimeout, "no reply came to %q within %s", path, timeout).
		With(semantics.DetailEntity, path)
	if outcome := semantics.AsError(err).Details[semantics.DetailOutcome]; outcome != "" {
		e = e.With(semantics.DetailOutcome, outcome)
	}
	return e
}

// Orphans is how many replies were completed for which no request waited (RR-6).
func (r *Requests) Orphans() int64 { return r.orphans.Load() }
