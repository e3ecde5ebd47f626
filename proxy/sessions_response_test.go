package proxy_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// A session that was taken for a client that is gone is free at once, as messages are.
func TestRECV_7_ClientGoneBeforeTheSessionCame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"grpc", "http"} {
		for what, request := range map[string]*sidebusv1.SessionsAcceptRequest{"next": {Source: tales}, "by name": acceptNamed("s")} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				over := newSpyStore()
				w := overSpy(t, over, name)
				w.tell(t, "s", "x")

				arrived := make(chan struct{})
				over.beforeAccept = func(ctx context.Context) {
					close(arrived)
					<-ctx.Done() // the session is taken just when the client is gone
				}
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() {
					_, err := w.sessions.Accept(ctx, request)
					gone <- err
				}()
				wait(t, "the accept", arrived)
				leave()
				if err := <-gone; err == nil {
					t.Error("the accept succeeded")
				}
				wait(t, "the close", over.closed)
				over.beforeAccept = nil
				eventually(t, "nothing held", func() bool { return w.broker.Held() == 0 })
				held := w.next(t)
				if got := w.hear(t, held, 1); len(got) != 1 || got[0].GetDeliveryCount() != 1 {
					t.Errorf("got %v", got)
				}
				if len(over.closed) != 0 {
					t.Error("a session that was delivered was closed")
				}
			})
		}
	}
}

// An id that is not UTF-8 cannot be written to gRPC, which is a way to make the writing itself fail.
func TestRECV_7_SessionThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	w := overSpy(t, over, "grpc")
	broken := &semantics.Message{MessageID: "1", SessionID: "\xff"}
	if _, err := over.Store.Send(t.Context(), "tales", []*semantics.Message{broken}); err != nil {
		t.Fatal(err)
	}
	_, err := w.sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: tales, MaxWait: &durationpb.Duration{}})
	if status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	wait(t, "the close", over.closed)
}
