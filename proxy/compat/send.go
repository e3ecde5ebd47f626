package compat

import (
	"net/http"

	"github.com/sidebus/sidebus/proxy/internal/brokerproperties"
	"github.com/sidebus/sidebus/semantics"
)

// batchType is the content type of a batch, without parameters (REST-3).
const batchType = "application/vnd.microsoft.servicebus.json"

// maxBatchBody is the maximum body size of a batch. Messages of 1 MiB together (MSG-21) fit with any JSON escaping.
const maxBatchBody = 8 << 20

// send stores the message or messages of a request (REST-1, REST-3).
func (x *exchange) send() error {
	isBatch := x.request.Header.Get("Content-Type") == batchType
	messages, err := x.messages(isBatch)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if n := m.Size(); n > semantics.MaxHTTPMessageSize {
			return semantics.HTTPMessageTooLarge(n)
		}
	}
	target, results, repeated, err := x.sendTo(x.route.entity, messages)
	if semantics.CodeOf(err) == semantics.NoMatchingSubscription {
		results, err = nil, nil // this API has no such error; see the error table
	}
	if err != nil {
		return err
	}
	if repeated {
		x.Header().Set(replayedHeader, "true")
	} else {
		x.Metrics.Sent(target, messages, results)
	}
	if len(results) == 1 && !isBatch {
		brokerproperties.Sent(x.Header(), results[0])
	}
	x.Header().Set("Content-Length", "0")
	x.WriteHeader(http.StatusCreated)
	return nil
}

func (x *exchange) messages(isBatch bool) ([]*semantics.Message, error) {
	if isBatch {
		body, err := x.readBody("batch", maxBatchBody)
		if err != nil {
			return nil, err
		}
		return brokerproperties.Batch(body)
	}
	m, err := brokerproperties.Message(x.request.Header, x.spelling)
	if err != nil {
		return nil, err
	}
	if m.Body, err = x.readBody("message", semantics.MaxHTTPMessageSize); err != nil {
		return nil, err
	}
	return []*semantics.Message{m}, nil
}

// Headers of an idempotent send (IDEM-1), which Service Bus does not have.
const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// sendTo sends to a queue or a topic. The path does not tell which, so it tries both.
func (x *exchange) sendTo(
	path string, messages []*semantics.Message,
) (target semantics.Target, results []semantics.SendResult, repeated bool, err error) {
	keys := x.request.Header.Values(keyHeader)
	if len(keys) > 1 {
		return target, nil, false, semantics.Errorf(semantics.InvalidArgument, "%s appears twice", keyHeader).
			With(semantics.DetailField, keyHeader)
	}
	targets := []semantics.Target{semantics.ToQueue(path), semantics.ToTopic(path)}
	if x.topics.has(path) {
		targets[0], targets[1] = targets[1], targets[0]
	}
	ctx, sending := x.Metrics.Traces.Send(x.request.Context(), targets[0], messages)
	defer func() { sending.End(err) }()
	for _, target = range targets {
		if len(keys) == 0 {
			results, err = x.Broker.Send(ctx, target, messages)
		} else {
			results, repeated, err = x.Broker.SendOnce(ctx, target, keys[0], messages)
		}
		if semantics.CodeOf(err) != semantics.EntityNotFound {
			x.topics.note(path, target.IsTopic)
			return target, results, repeated, err
		}
	}
	return target, nil, false, err
}
