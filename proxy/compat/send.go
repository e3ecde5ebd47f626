package compat

import (
	"net/http"

	"github.com/sidebus/sidebus/proxy/internal/brokerproperties"
	"github.com/sidebus/sidebus/semantics"
)

// batchType is the content type of a batch, which has no parameters (REST-3).
const batchType = "application/vnd.microsoft.servicebus.json"

// maxBatchBody is the most bytes of a batch. Messages of 1 MiB together (MSG-21) fit in however JSON escapes them.
const maxBatchBody = 8 << 20

// send stores the message or the messages of a request (REST-1, REST-3).
func (x *exchange) send() error {
	isBatch := x.request.Header.Get("Content-Type") == batchType
	messages, err := x.messages(isBatch)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if n := m.Size(); n > semantics.MaxHTTPMessageSize {
			return semantics.SizeExceeded("message", n, semantics.MaxHTTPMessageSize)
		}
	}
	results, err := x.sendTo(x.route.entity, messages)
	if semantics.CodeOf(err) == semantics.NoMatchingSubscription {
		results, err = nil, nil // who sends here cannot be told; see the table of ERR
	}
	if err != nil {
		return err
	}
	x.Metrics.Sent(results)
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

// sendTo sends to a queue or a topic: the path does not tell which.
func (x *exchange) sendTo(path string, messages []*semantics.Message) ([]semantics.SendResult, error) {
	targets := []semantics.Target{semantics.ToQueue(path), semantics.ToTopic(path)}
	if x.topics.has(path) {
		targets[0], targets[1] = targets[1], targets[0]
	}
	var results []semantics.SendResult
	var err error
	for _, target := range targets {
		if results, err = x.Broker.Send(x.request.Context(), target, messages); semantics.CodeOf(err) != semantics.EntityNotFound {
			x.topics.note(path, target.IsTopic)
			return results, err
		}
	}
	return nil, err
}
