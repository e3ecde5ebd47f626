package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func rows(reasons ...string) (results []*sidebusv1.SettleResponse_Result) {
	for i, reason := range reasons {
		row := &sidebusv1.SettleResponse_Result{LockToken: fmt.Sprint("t", i)}
		if reason != "" {
			row.Reason = &reason
		}
		results = append(results, row)
	}
	return results
}

// What was completed stays known whatever happens to the receive, and is completed once.
func TestRECV_15_CompletedIsKnown(t *testing.T) {
	t.Parallel()
	one := []*sidebusv1.ReceivedMessage{{LockToken: new("next")}}
	draining := &sidebusv1.Failure{Reason: "STORE_UNAVAILABLE", Retryable: true}
	lost := "MESSAGE_LOCK_LOST"
	for name, c := range map[string]struct {
		answers   []any
		tokens    []int // how many each call has
		completed []error
		messages  int
		want      error
	}{
		"both":              {[]any{answer(one, nil, "", "")}, []int{2}, []error{nil, nil}, 1, nil},
		"one lost":          {[]any{answer(one, nil, "", lost)}, []int{2}, []error{nil, client.CodeMessageLockLost}, 1, nil},
		"broken, then lost": {[]any{broke, answer(one, nil, lost, lost)}, []int{2, 2}, []error{nil, nil}, 1, nil},
		"refused, then lost": {
			[]any{redisAway, answer(one, nil, lost, "")}, []int{2, 2}, []error{client.CodeMessageLockLost, nil}, 1, nil,
		},
		"no message at first": {[]any{answer(nil, nil, "", lost), answer(one, nil)}, []int{2, 0}, []error{nil, client.CodeMessageLockLost}, 1, nil},
		"receive fails for a while": {
			[]any{answer(nil, draining, "", ""), redisAway, answer(one, nil)}, []int{2, 0, 0}, []error{nil, nil}, 1, nil,
		},
		"receive fails": {
			[]any{answer(nil, &sidebusv1.Failure{Reason: "ENTITY_DISABLED"}, "", lost)},
			[]int{2},
			[]error{nil, client.CodeMessageLockLost},
			0, client.CodeEntityDisabled,
		},
		"all fails": {[]any{failure(5, "ENTITY_NOT_FOUND", 0, nil)}, []int{2}, nil, 0, client.CodeEntityNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScript(c.answers...)
				sidebus := client.NewFromConn(s, nil)
				defer sidebus.Close()
				r := newReceiver(t, sidebus, "q", nil)
				next, err := r.CompleteAndReceive(t.Context(), []*client.ReceivedMessage{{LockToken: "t0"}, {LockToken: "t1"}}, 10, nil)
				if !errors.Is(err, c.want) || len(next.Messages) != c.messages || len(next.Completed) != len(c.completed) {
					t.Fatalf("got %d messages, %v and %v", len(next.Messages), next.Completed, err)
				}
				for i, want := range c.completed {
					if !errors.Is(next.Completed[i], want) {
						t.Errorf("message %d: got %v, want %v", i, next.Completed[i], want)
					}
				}
				for i, request := range s.seen {
					if n := len(request.(*sidebusv1.CompleteAndReceiveRequest).GetLockTokens()); i >= len(c.tokens) || n != c.tokens[i] {
						t.Errorf("call %d completes %d messages, want %v", i, n, c.tokens)
					}
				}
			})
		})
	}
}

func answer(messages []*sidebusv1.ReceivedMessage, failed *sidebusv1.Failure, reasons ...string) proto.Message {
	return &sidebusv1.CompleteAndReceiveResponse{Results: rows(reasons...), Messages: messages, Failure: failed}
}

func TestRECV_15_InASessionOfTheClient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := connect(t, target, nil)
	queue := queueOf(t, c, &sidebusv1.Queue{RequiresSession: new(true)})
	for _, body := range []string{"cut", "sew"} {
		if err := newSender(t, c, queue).SendMessage(ctx, &client.Message{SessionID: new("shirt"), Body: []byte(body)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.AcceptNextSessionForQueue(ctx, queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	var done []*client.ReceivedMessage
	for _, want := range []string{"cut", "sew"} {
		next, err := r.CompleteAndReceive(ctx, done, 1, nil)
		if err := errors.Join(append(next.Completed, err)...); err != nil {
			t.Fatal(err)
		}
		if done = next.Messages; len(done) != 1 || string(done[0].Body) != want {
			t.Fatalf("got %d messages, want %s", len(done), want)
		}
	}
	next, err := r.CompleteAndReceive(ctx, done, 1, &client.CompleteAndReceiveOptions{MaxWait: new(time.Duration)})
	if err != nil || len(next.Messages) > 0 || len(next.Completed) != 1 || next.Completed[0] != nil {
		t.Fatalf("got %v and %v, want both messages completed and no more", next, err)
	}
}
