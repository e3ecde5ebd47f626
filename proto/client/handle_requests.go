package client

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// errBroke is what a request on a stream that broke fails with. It may have taken effect.
var errBroke = &Error{Code: CodeConnectionLost, Message: "the stream broke", Retryable: true, OutcomeUnknown: true}

// requests makes requests on one stream and matches the answers with them.
type requests struct {
	send  func(*sidebusv1.SubscribeRequest) error
	ended <-chan struct{} // closed when no answer comes any more

	mu      sync.Mutex
	lastID  int
	answers map[string]chan *sidebusv1.SubscribeResponse // of the requests that wait, by request id
}

func newRequests(send func(*sidebusv1.SubscribeRequest) error, ended <-chan struct{}) *requests {
	return &requests{send: send, ended: ended, answers: map[string]chan *sidebusv1.SubscribeResponse{}}
}

// ask makes a request and waits for its answer. The error is an *Error, or that of ctx in one.
func (r *requests) ask(
	ctx context.Context, request *sidebusv1.SubscribeRequest,
) (*sidebusv1.SubscribeResponse, error) {
	answer := make(chan *sidebusv1.SubscribeResponse, 1)
	request.RequestId = r.add(answer)
	defer r.remove(request.RequestId)
	if err := r.send(request); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroke, err)
	}
	var response *sidebusv1.SubscribeResponse
	select {
	case response = <-answer:
	case <-ctx.Done():
		return nil, cancelled(ctx, &Error{Code: CodeCancelled, Message: ctx.Err().Error(), OutcomeUnknown: true})
	case <-r.ended:
		select {
		case response = <-answer: // it came just before the end
		default:
			return nil, errBroke
		}
	}
	if failure := response.GetFailure(); failure != nil {
		return nil, errorOfFailure(failure)
	}
	return response, nil
}

// add returns an id for a new request, whose answer goes to the channel.
func (r *requests) add(answer chan *sidebusv1.SubscribeResponse) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastID++
	id = strconv.Itoa(r.lastID)
	r.answers[id] = answer
	return id
}

func (r *requests) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.answers, id)
}

// answered passes an answer to its request. If the request does not wait any more, the answer is dropped.
func (r *requests) answered(response *sidebusv1.SubscribeResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer := r.answers[response.GetRequestId()]; answer != nil {
		delete(r.answers, response.GetRequestId()) // a second answer would block
		answer <- response
	}
}
