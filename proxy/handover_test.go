package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// modes are the receive modes by their name in JSON.
var modes = map[string]sidebusv1.ReceiveRequest_Mode{
	"PEEK_LOCK":          sidebusv1.ReceiveRequest_PEEK_LOCK,
	"RECEIVE_AND_DELETE": sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
}

func TestRECV_7_ClientGoneBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	receives := map[string]func(ctx context.Context, s *sidecar, mode string) error{
		"grpc": func(ctx context.Context, s *sidecar, mode string) error {
			_, err := s.messages.Receive(ctx, &sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(2), Mode: modes[mode]})
			return err
		},
		"http": func(ctx context.Context, s *sidecar, mode string) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost,
				"http://"+s.proxy.HTTPAddr().String()+"/v1/queues/orders/messages:receive",
				strings.NewReader(`{"maxMessages":2,"mode":"`+mode+`"}`))
			if err != nil {
				return err
			}
			response, err := s.http.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		},
	}
	for wire, receive := range receives {
		for mode := range modes {
			t.Run(wire+" "+mode, func(t *testing.T) {
				t.Parallel()
				over := newSpyStore()
				s := start(t, over)
				s.send(t, "one")
				s.send(t, "two")

				arrived := make(chan struct{})
				over.beforeReceive = func(ctx context.Context) {
					close(arrived)
					<-ctx.Done() // the messages are taken just when the client is gone
				}
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() { gone <- receive(ctx, s, mode) }()
				wait(t, "the receive", arrived)
				leave()
				if err := <-gone; err == nil {
					t.Error("the receive succeeded")
				}
				awaitCount(t, "released", over.released, 2)

				over.beforeReceive = nil
				taken := s.receive(t)
				if len(taken) != 2 || taken[0].GetDeliveryCount() != 1 || s.broker.Held() != 2 {
					t.Errorf("got %d messages, held %d: %v", len(taken), s.broker.Held(), taken)
				}
			})
		}
	}
}

func TestRECV_7_RemovedOnlyAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"grpc", "http"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			over := newSpyStore()
			s := start(t, over)
			s.send(t, "one")
			if wire == "grpc" {
				response, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
					Source: orders, MaxWait: &durationpb.Duration{}, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
				})
				if err != nil || len(response.GetMessages()) != 1 || response.GetMessages()[0].LockToken != nil {
					t.Fatalf("got %v, %v", response, err)
				}
			} else if body := s.post(t, "receive", `{"maxWait":"0s","mode":"RECEIVE_AND_DELETE"}`); !strings.Contains(body, `"text":"one"`) || strings.Contains(body, "lock") {
				t.Fatalf("got %s", body)
			}
			awaitCount(t, "removed", over.completed, 1)
			if n := s.runtime(t).GetActiveMessageCount(); n != 0 {
				t.Errorf("%d messages are left", n)
			}
		})
	}
}

// A text that is no UTF-8 cannot be written to gRPC, which is a way to make the writing itself fail.
func TestRECV_7_AnswerThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	s := start(t, over)
	broken := &semantics.Message{MessageID: "1", Body: []byte("\xff"), BodyKind: semantics.BodyText}
	if _, err := over.Store.Send(t.Context(), "orders", []*semantics.Message{broken}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.messages.Receive(t.Context(), receiveNow()); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	awaitCount(t, "released", over.released, 1)
	if s.broker.Held() != 0 || s.runtime(t).GetAvailableCount() != 1 {
		t.Errorf("held %d, counts %v", s.broker.Held(), s.runtime(t))
	}
}

func TestRECV_7_StopWaitsForRemovals(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	s := start(t, over)
	const n = 20
	for range n {
		s.send(t, "one")
	}
	for range n {
		if _, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
			Source: orders, MaxWait: &durationpb.Duration{}, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.stop()
	wait(t, "end of Run", s.done)
	if got := len(over.completed); got != n {
		t.Errorf("%d removals when Run had returned, want %d", got, n)
	}
}
