package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

const (
	nobodysToken = "0b9c3f3e-6a0e-4d2c-9d8e-2f6f3f0f8c11"
	queuePath    = "/v1/queues/orders"
	verbPath     = queuePath + "/messages:"
	sessionPath  = queuePath + "/sessions:"
)

func TestGRPCRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.furnish(t)
	check := s.unchanged(t)
	send := func(m *sidebusv1.Message) func() error {
		return func() error {
			_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{m}})
			return err
		}
	}
	receive := func(r *sidebusv1.ReceiveRequest) func() error {
		return func() error {
			_, err := s.messages.Receive(t.Context(), r)
			return err
		}
	}
	complete := func(source string, tokens ...string) func() error {
		return func() error {
			_, err := s.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: source, LockTokens: tokens})
			return err
		}
	}
	ensure := func(q *sidebusv1.Queue) func() error {
		return func() error {
			_, err := s.admin.EnsureQueue(t.Context(), &sidebusv1.EnsureQueueRequest{Name: "queues/new", Queue: q})
			return err
		}
	}
	update := func(r *sidebusv1.UpdateQueueRequest) func() error {
		return func() error {
			_, err := s.admin.UpdateQueue(t.Context(), r)
			return err
		}
	}
	property := func(v *sidebusv1.Value) func() error {
		return send(&sidebusv1.Message{Properties: map[string]*sidebusv1.Value{"p": v}})
	}
	unknown := func(m proto.Message) { m.ProtoReflect().SetUnknown([]byte{0xf8, 0x7f, 0x01}) } // field 2047
	withUnknown := &sidebusv1.Message{}
	unknown(withUnknown)
	receiveUnknown := receiveNow()
	unknown(receiveUnknown)
	queueUnknown := &sidebusv1.Queue{}
	unknown(queueUnknown)
	valueUnknown := &sidebusv1.Value{}
	unknown(valueUnknown)

	cases := []struct {
		name          string
		call          func() error
		code          codes.Code
		reason, field string
	}{
		{"unknown field of a message", send(withUnknown), codes.InvalidArgument, "INVALID_ARGUMENT", "messages"},
		{"unknown field of a receive", receive(receiveUnknown), codes.InvalidArgument, "INVALID_ARGUMENT", "request"},
		{"unknown option", ensure(queueUnknown), codes.InvalidArgument, "INVALID_ARGUMENT", "queue"},
		{"property of unknown type", property(valueUnknown), codes.InvalidArgument, "INVALID_ARGUMENT", "properties[p]"},
		{"property without value", property(&sidebusv1.Value{}), codes.InvalidArgument, "INVALID_ARGUMENT", "properties[p]"},
		{"property out of its type", property(&sidebusv1.Value{Kind: &sidebusv1.Value_ByteValue{ByteValue: 256}}), codes.InvalidArgument, "INVALID_ARGUMENT", "properties[p]"},
		{"property that is no uuid", property(&sidebusv1.Value{Kind: &sidebusv1.Value_UuidValue{UuidValue: "x"}}), codes.InvalidArgument, "INVALID_ARGUMENT", "properties[p]"},
		{"json that is none", send(&sidebusv1.Message{Content: &sidebusv1.Message_Json{Json: "{"}}), codes.InvalidArgument, "INVALID_ARGUMENT", "json"},
		{"MSG-2 empty message id", send(&sidebusv1.Message{MessageId: proto.String("")}), codes.InvalidArgument, "INVALID_ARGUMENT", "messageId"},
		{"MSG-3 keys differ", send(&sidebusv1.Message{SessionId: proto.String("a"), PartitionKey: proto.String("b")}), codes.InvalidArgument, "PARTITION_KEY_MISMATCH", "partitionKey"},
		{"TTL-14 no lifetime", send(&sidebusv1.Message{TimeToLive: &durationpb.Duration{}}), codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "timeToLive"},
		{"broken duration", send(&sidebusv1.Message{TimeToLive: &durationpb.Duration{Seconds: 1, Nanos: -1}}), codes.InvalidArgument, "INVALID_ARGUMENT", "timeToLive"},
		{"other kind of target", func() error {
			_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "things/t", Messages: []*sidebusv1.Message{{}}})
			return err
		}, codes.InvalidArgument, "INVALID_ARGUMENT", "target"},
		{"no target", func() error {
			_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{})
			return err
		}, codes.InvalidArgument, "INVALID_ARGUMENT", "target"},
		{"BATCH-2 too many messages", func() error {
			many := slices.Repeat([]*sidebusv1.Message{{}}, 4501)
			_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: many})
			return err
		}, codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "messages"},
		{"other kind of source", receive(&sidebusv1.ReceiveRequest{Source: "things/t"}), codes.InvalidArgument, "INVALID_ARGUMENT", "source"},
		{"RECV-6 no messages", receive(&sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(0)}), codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "maxMessages"},
		{"RECV-6 negative messages", receive(&sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(-1)}), codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "maxMessages"},
		{"RECV-6 negative wait", receive(&sidebusv1.ReceiveRequest{Source: orders, MaxWait: &durationpb.Duration{Seconds: -1}}), codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "maxWait"},
		{"RECV-6 endless wait", receive(&sidebusv1.ReceiveRequest{Source: orders, MaxWait: &durationpb.Duration{Seconds: 1 << 62}}), codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "maxWait"},
		{"unknown mode", receive(&sidebusv1.ReceiveRequest{Source: orders, Mode: 256}), codes.InvalidArgument, "INVALID_ARGUMENT", "mode"},
		{"unknown sub-queue", receive(&sidebusv1.ReceiveRequest{Source: orders, SubQueue: 256}), codes.InvalidArgument, "INVALID_ARGUMENT", "subQueue"},
		{"unknown queue", receive(&sidebusv1.ReceiveRequest{Source: "queues/none"}), codes.NotFound, "ENTITY_NOT_FOUND", ""},
		{"unknown queue of a token", complete("queues/none", nobodysToken), codes.NotFound, "ENTITY_NOT_FOUND", ""},
		{"LOCK-2 malformed token", complete(orders, nobodysToken[:35]), codes.InvalidArgument, "INVALID_ARGUMENT", "lockTokens"},
		{"SETTLE-13 empty token", complete(orders, ""), codes.FailedPrecondition, "INVALID_OPERATION", "lockTokens"},
		{"no tokens", complete(orders), codes.InvalidArgument, "INVALID_ARGUMENT", "lockTokens"},
		{"unknown status", ensure(&sidebusv1.Queue{Status: sidebusv1.Queue_Status(256).Enum()}), codes.InvalidArgument, "INVALID_ARGUMENT", "status"},
		{"ENT-11 short lock", ensure(&sidebusv1.Queue{LockDuration: durationpb.New(1)}), codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "lockDuration"},
		{"two names", ensure(&sidebusv1.Queue{Name: "newer"}), codes.InvalidArgument, "INVALID_ARGUMENT", "name"},
		{"no description", func() error {
			_, err := s.admin.CreateQueue(t.Context(), &sidebusv1.CreateQueueRequest{})
			return err
		}, codes.InvalidArgument, "INVALID_ARGUMENT", "name"},
		{"other kind of resource", func() error {
			_, err := s.admin.GetQueue(t.Context(), &sidebusv1.GetQueueRequest{Name: "orders"})
			return err
		}, codes.InvalidArgument, "INVALID_ARGUMENT", "name"},
		{"ENT-17 negative page", func() error {
			_, err := s.admin.ListQueues(t.Context(), &sidebusv1.ListQueuesRequest{PageSize: -1})
			return err
		}, codes.OutOfRange, "ARGUMENT_OUT_OF_RANGE", "pageSize"},
		{"empty update", update(&sidebusv1.UpdateQueueRequest{Name: orders}), codes.InvalidArgument, "INVALID_ARGUMENT", "updateMask"},
		{"unknown option in the mask", update(&sidebusv1.UpdateQueueRequest{Name: orders, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"nope"}}}), codes.InvalidArgument, "INVALID_ARGUMENT", "nope"},
		{"mask that changes nothing", update(&sidebusv1.UpdateQueueRequest{Name: orders, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"created_at"}}}), codes.InvalidArgument, "INVALID_ARGUMENT", "updateMask"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.call()
			if status.Code(err) != c.code {
				t.Fatalf("got %v, want %s", err, c.code)
			}
			if info := infoOf(t, err); info.GetReason() != c.reason || info.GetMetadata()["field"] != c.field || info.GetDomain() != "sidebus" {
				t.Errorf("got %v, want %s %q", info, c.reason, c.field)
			}
			check(t)
		})
	}
}

func TestENT_3_NamesOnBothWires(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	good := []string{"a", "A.b-c_d9", "deep/er/name", "x..y", strings.Repeat("n", 260), `back\slash`}
	for _, name := range good {
		if a := s.call(t, http.MethodPut, "/v1/queues/"+url.PathEscape(name), `{}`); a.status != http.StatusOK {
			t.Errorf("PUT %q: got %d %s", name, a.status, a.body)
		}
		queue, err := s.admin.GetQueue(t.Context(), &sidebusv1.GetQueueRequest{Name: "queues/" + name})
		if want := strings.ReplaceAll(name, `\`, "/"); err != nil || queue.GetName() != want {
			t.Errorf("GetQueue %q: got %q, %v", name, queue.GetName(), err)
		}
		a := s.call(t, http.MethodPost, "/v1/queues/"+strings.ToLower(url.PathEscape(name))+"/messages:send", `{"messages":[{}]}`)
		if a.status != http.StatusOK {
			t.Errorf("send to %q: got %d %s", name, a.status, a.body)
		}
	}
	check := s.unchanged(t)
	bad := []string{
		".a", "a.", "-a", "a_", "a b", " ", "a//b", "/a", "a/", "a?b", "a#b", "a*b", "a@b", "a%b", "a%2Fb", "a:b", "a+b", "é", "$a", "a/$b",
		"a\nb", "a\x00b", "a/Subscriptions/b", "..", ".", strings.Repeat("n", 261), "messages:send",
	}
	for _, name := range bad {
		if a := s.call(t, http.MethodPut, "/v1/queues/"+url.PathEscape(name), `{}`); a.status != http.StatusBadRequest {
			t.Errorf("PUT %q: got %d %s", name, a.status, a.body)
		} else if reason, field := a.reason(t); reason != "INVALID_ARGUMENT" || field != "name" {
			t.Errorf("PUT %q: got %s", name, a.body)
		}
		_, err := s.admin.EnsureQueue(t.Context(), &sidebusv1.EnsureQueueRequest{Name: "queues/" + name})
		if status.Code(err) != codes.InvalidArgument || infoOf(t, err).GetMetadata()["field"] != "name" {
			t.Errorf("EnsureQueue %q: got %v", name, err)
		}
	}
	if a := s.call(t, http.MethodPut, "/v1/queues/", `{}`); a.status != http.StatusBadRequest && a.status != http.StatusNotFound {
		t.Errorf("PUT without name: got %d %s", a.status, a.body)
	}
	check(t)
}

func TestHugeHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	huge := strings.Repeat("x", 80<<10)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.proxy.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()                                                                                        //nolint:errcheck // only read from
	go fmt.Fprintf(conn, "GET /v1/queues HTTP/1.1\r\nHost: x\r\nX-Huge: %s\r\n\r\n", strings.Repeat(huge, 8)) //nolint:errcheck // the server may hang up before the end
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("HTTP: got %v, %v, want 431", response, err)
	}
	if err == nil {
		_ = response.Body.Close()
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-huge", huge)
	if _, err := s.admin.ListQueues(ctx, &sidebusv1.ListQueuesRequest{}); err == nil {
		t.Error("gRPC: huge metadata was accepted")
	}
	s.send(t, "it goes on")
}
