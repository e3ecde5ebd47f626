package proxy_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// wire is a sidecar of which a test sees one wire. What is on the other is for looking on.
type wire struct {
	*sidecar

	messages sidebusv1.MessagesClient // over this wire
	sessions sidebusv1.SessionsClient // over this wire
	admin    sidebusv1.AdminClient    // over this wire
	clock    *clock
}

// onBothWires runs a test over gRPC and over HTTP, each with a sidecar of its own.
func onBothWires(t *testing.T, test func(t *testing.T, w *wire)) {
	t.Helper()
	for _, name := range []string{"grpc", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := newClock()
			w := &wire{sidecar: start(t, memstore.New(memstore.WithClock(at.Now))), clock: at}
			w.messages, w.sessions = w.sidecar.clients(name)
			if w.admin = w.sidecar.admin; name == "http" {
				w.admin = sidebusv1.NewAdminClient(overHTTP{w.sidecar})
			}
			test(t, w)
		})
	}
}

// clients are those of one wire.
func (s *sidecar) clients(wire string) (sidebusv1.MessagesClient, sidebusv1.SessionsClient) {
	if wire == "http" {
		return sidebusv1.NewMessagesClient(overHTTP{s}), sidebusv1.NewSessionsClient(overHTTP{s})
	}
	return s.messages, s.sessions
}

// put stores messages in "orders" and gives the results.
func (w *wire) put(t *testing.T, messages ...*sidebusv1.Message) []*sidebusv1.SendResponse_Result {
	t.Helper()
	sent, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return sent.GetResults()
}

// take receives up to most messages from "orders" that are there now.
func (w *wire) take(t *testing.T, most int32) []*sidebusv1.ReceivedMessage {
	t.Helper()
	taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
		Source: orders, MaxMessages: &most, MaxWait: &durationpb.Duration{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return taken.GetMessages()
}

// texts shows messages by their texts.
func texts(messages []*sidebusv1.ReceivedMessage) string {
	all := make([]string, len(messages))
	for i, m := range messages {
		all[i] = m.GetText()
	}
	return strings.Join(all, " ")
}

func text(s string) *sidebusv1.Message {
	return &sidebusv1.Message{Content: &sidebusv1.Message_Text{Text: s}}
}

// settled fails the test unless every row is done.
func settled(t *testing.T) func(*sidebusv1.SettleResponse, error) {
	t.Helper()
	return func(response *sidebusv1.SettleResponse, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range response.GetResults() {
			if r.Reason != nil {
				t.Errorf("not settled: %v", r)
			}
		}
	}
}

// clock is the clock of a store, which stands still until a test moves it. It begins at the present, by which the
// Broker judges what it still holds.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now().UTC().Truncate(time.Millisecond)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// refusal is a call that must fail and change nothing.
type refusal = refusalBy[sidebusv1.MessagesClient]

// refusalBy is a refusal of a service with the client C.
type refusalBy[C any] struct {
	name          string
	call          func(ctx context.Context, client C) error
	reason, field string
}

// refuse makes a refusal of a method and its request.
func refuse[C any, Request, Response proto.Message](name, reason, field string,
	method func(C, context.Context, Request, ...grpc.CallOption) (Response, error), request Request,
) refusalBy[C] {
	call := func(ctx context.Context, client C) error {
		_, err := method(client, ctx, request)
		return err
	}
	return refusalBy[C]{name, call, reason, field}
}

// check makes the call and compares the failure.
func (r refusalBy[C]) check(t *testing.T, client C) {
	t.Helper()
	err := r.call(t.Context(), client)
	if code := statuses[r.reason].grpc; code == codes.OK || status.Code(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	if info := infoOf(t, err); info.GetReason() != r.reason || info.GetMetadata()["field"] != r.field || info.GetDomain() != "sidebus" {
		t.Errorf("got %v, want %s %q", info, r.reason, r.field)
	}
}

// unknownField puts a field into a message that no version knows.
func unknownField[M proto.Message](m M) M {
	m.ProtoReflect().SetUnknown(protoreflect.RawFields{0xf8, 0x7f, 0x01}) // field 2047
	return m
}
