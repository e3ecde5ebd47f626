package proxy_test

import (
	"context"
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

// receives take the two messages of "orders", deferred ones by number, over each wire.
func receives(s *sidecar) map[string]func(ctx context.Context, mode sidebusv1.ReceiveRequest_Mode) error {
	all := map[string]func(ctx context.Context, mode sidebusv1.ReceiveRequest_Mode) error{}
	for wire, messages := range map[string]sidebusv1.MessagesClient{
		"grpc": s.messages, "multiplexed": sidebusv1.NewMessagesClient(s.shared), "http": sidebusv1.NewMessagesClient(overHTTP{s}),
	} {
		all[wire+" receive"] = func(ctx context.Context, mode sidebusv1.ReceiveRequest_Mode) error {
			_, err := messages.Receive(ctx, &sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(2), Mode: mode})
			return err
		}
		all[wire+" completeAndReceive"] = func(ctx context.Context, mode sidebusv1.ReceiveRequest_Mode) error {
			_, err := messages.CompleteAndReceive(ctx, &sidebusv1.CompleteAndReceiveRequest{Source: orders, MaxMessages: proto.Int32(2), Mode: mode})
			return err
		}
		all[wire+" receiveBySequence"] = func(ctx context.Context, mode sidebusv1.ReceiveRequest_Mode) error {
			_, err := messages.ReceiveBySequence(ctx, &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{1, 2}, Mode: mode})
			return err
		}
		all[wire+" receiveDeferred"] = func(ctx context.Context, mode sidebusv1.ReceiveRequest_Mode) error {
			_, err := messages.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: []int64{1, 2}, Mode: mode})
			return err
		}
	}
	return all
}

func TestRECV_7_ClientGoneBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name := range receives(&sidecar{}) {
		for mode, number := range modes {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				over := newSpyStore()
				s := start(t, over)
				s.send(t, "one")
				s.send(t, "two")
				isDeferred := strings.HasSuffix(name, "receiveDeferred")
				if isDeferred {
					s.deferAll(t)
				}

				arrived := make(chan struct{})
				over.beforeReceive = func(ctx context.Context) {
					close(arrived)
					<-ctx.Done() // the messages are taken just when the client is gone
				}
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() { gone <- receives(s)[name](ctx, number) }()
				wait(t, "the receive", arrived)
				leave()
				if err := <-gone; err == nil {
					t.Error("the receive succeeded")
				}
				awaitCount(t, "released", over.released, 2)

				over.beforeReceive = nil
				if isDeferred { // they are what they were
					if n := s.runtime(t).GetDeferredCount(); n != 2 || s.broker.Held() != 0 {
						t.Errorf("%d deferred, held %d", n, s.broker.Held())
					}
					return
				}
				taken := s.receive(t)
				if len(taken) != 2 || taken[0].GetDeliveryCount() != 1 || s.broker.Held() != 2 {
					t.Errorf("got %d messages, held %d: %v", len(taken), s.broker.Held(), taken)
				}
			})
		}
	}
}

// deferAll defers what is available in "orders".
func (s *sidecar) deferAll(t *testing.T) {
	t.Helper()
	for _, m := range s.receive(t) {
		s.post(t, "defer", `{"lockTokens":["`+m.GetLockToken()+`"]}`)
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

func TestRECV_7_ByNumberRemovedOnlyAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"receiveBySequence", "receiveDeferred"} {
		for _, name := range []string{"grpc", "multiplexed", "http"} {
			t.Run(name+" "+verb, func(t *testing.T) {
				t.Parallel()
				over := newSpyStore()
				s := start(t, over)
				s.send(t, "one")
				s.send(t, "two")
				if verb == "receiveDeferred" {
					s.deferAll(t)
				}
				if err := receives(s)[name+" "+verb](t.Context(), sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE); err != nil {
					t.Fatal(err)
				}
				awaitCount(t, "removed", over.completed, 2)
				if n := s.runtime(t).GetTotalMessageCount(); n != 0 || s.broker.Held() != 0 {
					t.Errorf("%d messages are left, %d held", n, s.broker.Held())
				}
			})
		}
	}
}

// A text that is not UTF-8 cannot be written to gRPC, which is a way to make the writing itself fail.
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
