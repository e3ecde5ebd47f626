package client

import (
	"context"
	"errors"
	"testing"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// asking returns requests that call respond with each one that is sent; end ends the stream.
func asking(respond func(r *requests, id string, end func())) *requests {
	ended := make(chan struct{})
	var r *requests
	r = newRequests(func(request *sidebusv1.SubscribeRequest) error {
		respond(r, request.GetRequestId(), func() { close(ended) })
		return nil
	}, ended)
	return r
}

func answerOf(id string) *sidebusv1.SubscribeResponse {
	return &sidebusv1.SubscribeResponse{RequestId: id}
}

// An answer that came before the end of the stream counts; without one the outcome is unknown.
func TestRequestsWhenTheStreamEnds(t *testing.T) {
	t.Parallel()
	for range 100 {
		r := asking(func(r *requests, id string, end func()) {
			r.answered(answerOf(id))
			end()
		})
		if response, err := r.ask(t.Context(), &sidebusv1.SubscribeRequest{}); err != nil || response.GetRequestId() != "1" {
			t.Fatalf("got %v, %v", response, err)
		}
	}
	r := asking(func(_ *requests, _ string, end func()) { end() })
	if _, err := r.ask(t.Context(), &sidebusv1.SubscribeRequest{}); !errors.Is(err, errBroke) {
		t.Errorf("got %v", err)
	}
}

// What comes after the answer, or after the caller has gone, blocks nothing and reaches no other request.
func TestRequestsWithLateAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := asking(func(r *requests, id string, _ func()) {
		switch id {
		case "1":
			cancel()
		default:
			r.answered(answerOf("1"))
			r.answered(answerOf(id))
			r.answered(answerOf(id))
		}
	})
	if _, err := r.ask(ctx, &sidebusv1.SubscribeRequest{}); !errors.Is(err, CodeCancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if response, err := r.ask(t.Context(), &sidebusv1.SubscribeRequest{}); err != nil || response.GetRequestId() != "2" {
		t.Errorf("got %v, %v", response, err)
	}
	r.answered(answerOf("2"))
}
