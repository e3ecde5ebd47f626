package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// multiplexed connects with a client whose calls share a stream.
func multiplexed(t *testing.T, p *proxy.Proxy) grpc.ClientConnInterface {
	t.Helper()
	c, err := client.New(p.GRPCAddr().String(), nil)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.Conn()
}

// A call over a stream has the same answer or failure, to the last detail, as an RPC of its own.
func TestMultiplexAnswersAsAnRPC(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, conn := range []grpc.ClientConnInterface{s.conn, s.shared} { // so that no call has to wait for its connection
		_, err := sidebusv1.NewMessagesClient(conn).Receive(t.Context(), receiveNow())
		must(t, err)
	}
	for name, call := range map[string]func(conn grpc.ClientConnInterface) (proto.Message, error){
		"queue": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return sidebusv1.NewAdminClient(conn).GetQueue(t.Context(), &sidebusv1.GetQueueRequest{Name: orders})
		},
		"no queue": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return sidebusv1.NewMessagesClient(conn).Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/none"})
		},
		"empty": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return sidebusv1.NewMessagesClient(conn).Receive(t.Context(), receiveNow())
		},
		"out of range": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return sidebusv1.NewMessagesClient(conn).Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(-1)})
		},
		"bad text": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return sidebusv1.NewMessagesClient(conn).Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/\xff"})
		},
		"retryable": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return sidebusv1.NewSessionsClient(conn).GetState(t.Context(), &sidebusv1.SessionsGetStateRequest{Source: orders, LockToken: "x"})
		},
		"unknown method": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return nil, conn.Invoke(t.Context(), "/sidebus.v1.Messages/None", &sidebusv1.SendRequest{}, &sidebusv1.SendResponse{})
		},
		"other service": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			return nil, conn.Invoke(t.Context(), "/none/None", &sidebusv1.SendRequest{}, &sidebusv1.SendResponse{})
		},
		"ended": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return sidebusv1.NewMessagesClient(conn).Receive(ctx, receiveNow())
		},
		"timed out": func(conn grpc.ClientConnInterface) (proto.Message, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			return sidebusv1.NewMessagesClient(conn).Receive(ctx, &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(time.Minute)})
		},
	} {
		want, wantErr := call(s.conn)
		got, err := call(s.shared)
		if !proto.Equal(got, want) && wantErr == nil {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		a, b := status.Convert(err), status.Convert(wantErr)
		if name == "unknown method" || name == "timed out" { // only its code is part of the API; gRPC has several texts
			a, b = status.New(a.Code(), ""), status.New(b.Code(), "")
		}
		if !proto.Equal(a.Proto(), b.Proto()) {
			t.Errorf("%s: got %v, want %v", name, a.Proto(), b.Proto())
		}
	}
	s.eventuallyCounts(t, 2, "sidebus_rpcs_total", `method="Admin.GetQueue"`, `code="OK"`)
}

// countingStore returns a store, and how many receives have asked it.
func countingStore() (*spyStore, *atomic.Int64) {
	over, asked := newSpyStore(), &atomic.Int64{}
	over.beforeReceive = func(context.Context) { asked.Add(1) }
	return over, asked
}

// exchange is a stream that a test speaks with by hand.
type exchange struct {
	grpc.BidiStreamingClient[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]
}

func openExchange(t *testing.T, s *sidecar) exchange {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := sidebusv1.NewCallsClient(s.conn).Multiplex(ctx)
	must(t, err)
	return exchange{stream}
}

func callOf(t *testing.T, id uint64, method string, request proto.Message) *sidebusv1.MultiplexRequest_Call {
	t.Helper()
	encoded, err := proto.Marshal(request)
	must(t, err)
	return &sidebusv1.MultiplexRequest_Call{Id: id, Method: method, Request: encoded}
}

// answers reads until there are as many answers as wanted, and returns what they have by id: a reason, "" for success.
func (e exchange) answers(t *testing.T, n int) map[uint64]string {
	t.Helper()
	got := map[uint64]string{}
	for len(got) < n {
		response, err := e.Recv()
		must(t, err)
		for _, a := range response.GetAnswers() {
			if a.GetMore() {
				continue
			}
			if _, twice := got[a.GetId()]; twice {
				t.Errorf("call %d was answered twice", a.GetId())
			}
			got[a.GetId()] = ""
			if len(a.GetStatus()) > 0 {
				got[a.GetId()] = reasonIn(t, a.GetStatus())
			}
		}
	}
	return got
}

// A failure ends only its call; what is no request ends the stream.
func TestMultiplexFailuresOfOneCall(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	e := openExchange(t, s)
	const receive = sidebusv1.Messages_Receive_FullMethodName
	malformed := &sidebusv1.MultiplexRequest_Call{Id: 2, Method: receive, Request: []byte{0xff}}
	unknown := callOf(t, 3, receive, receiveNow())
	unknown.ProtoReflect().SetUnknown([]byte{0x78, 1})
	unknownInside := &sidebusv1.MultiplexRequest_Call{Id: 4, Method: receive, Request: []byte{0xf8, 7, 1}}
	negative := callOf(t, 5, receive, receiveNow())
	negative.Timeout = durationpb.New(-time.Second)
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{
		callOf(t, 1, "/sidebus.v1.Messages/None", receiveNow()), malformed, unknown, unknownInside, negative,
		callOf(t, 6, receive, receiveNow()), callOf(t, 9, sidebusv1.Messages_Publish_FullMethodName, receiveNow()),
	}, Cancelled: []uint64{77}}))
	got := e.answers(t, 7)
	want := map[uint64]string{
		1: "Unimplemented", 2: "INVALID_ARGUMENT", 3: "INVALID_ARGUMENT", 4: "INVALID_ARGUMENT", 5: "CANCELLED", 6: "", 9: "Unimplemented",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	large := callOf(t, 10, sidebusv1.Messages_Send_FullMethodName, &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 64<<10)}}}})
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{large, callOf(t, 11, receive, receiveNow())}}))
	if got := e.answers(t, 2); got[10] != "MESSAGE_SIZE_EXCEEDED" || got[11] != "MESSAGE_SIZE_EXCEEDED" {
		t.Errorf("got %v", got)
	}
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 12, receive, receiveNow())}}))
	if got := e.answers(t, 1); got[12] != "" {
		t.Errorf("after that: got %v", got)
	}
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 12, receive, receiveNow())}}))
	if _, err := e.Recv(); reasonOf(t, err) != "INVALID_ARGUMENT" {
		t.Errorf("an id that was used: got %v", err)
	}
	e = openExchange(t, s)
	request := &sidebusv1.MultiplexRequest{}
	request.ProtoReflect().SetUnknown([]byte{0x78, 1})
	must(t, e.Send(request))
	if _, err := e.Recv(); reasonOf(t, err) != "INVALID_ARGUMENT" {
		t.Errorf("an unknown field: got %v", err)
	}
	if n := s.receive(t); len(n) != 0 {
		t.Errorf("%d messages were stored", len(n))
	}
}

// The timeout of a call ends it, and so does its cancellation, which is not answered. A cancelled receive takes nothing.
func TestMultiplexCallsEnd(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	e := openExchange(t, s)
	waits := &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(time.Minute)}
	timed := callOf(t, 1, sidebusv1.Messages_Receive_FullMethodName, waits)
	timed.Timeout = durationpb.New(time.Millisecond)
	cancelled := callOf(t, 2, sidebusv1.Messages_Receive_FullMethodName, waits)
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{timed, cancelled}}))
	if got := e.answers(t, 1); got[1] == "" {
		t.Errorf("the call with a timeout: got %v", got)
	}
	must(t, e.Send(&sidebusv1.MultiplexRequest{Cancelled: []uint64{2}}))
	s.eventuallyCounts(t, 2, "sidebus_rpcs_total", `method="Messages.Receive"`, `code="CANCELLED"`)
	s.send(t, "x")
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 3, sidebusv1.Messages_Receive_FullMethodName, receiveNow())}}))
	response, err := e.Recv()
	must(t, err)
	received := &sidebusv1.ReceiveResponse{}
	must(t, proto.Unmarshal(response.GetAnswers()[0].GetResponse(), received))
	if response.GetAnswers()[0].GetId() != 3 || len(received.GetMessages()) != 1 || received.GetMessages()[0].GetDeliveryCount() != 1 {
		t.Errorf("got %v", response)
	}
	must(t, e.CloseSend())
	if _, err := e.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last answer: got %v", err)
	}
}

// Large messages go in both directions beside small calls, and arrive whole.
func TestMultiplexLargeBesideSmall(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	mustPatch(t, s, `{"maxMessageSizeInKilobytes":2048}`)
	messages := sidebusv1.NewMessagesClient(s.shared)
	body := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for range 5 {
				_, err := messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: body}}}})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders})
				if err != nil || len(got.GetMessages()) != 1 || got.GetMessages()[0].GetText() != body {
					t.Errorf("a large message: got %d messages, %v", len(got.GetMessages()), err)
					return
				}
			}
		})
		work.Go(func() {
			for range 200 {
				got, err := messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, FromSequenceNumber: proto.Int64(1 << 40)})
				if err != nil || len(got.GetMessages()) != 0 {
					t.Errorf("a small call: got %v, %v", got, err)
				}
			}
		})
	}
	work.Wait()
}

// Thousands of calls wait on one stream, others pass them, and each message reaches one.
func TestMultiplexThousandsInFlight(t *testing.T) {
	t.Parallel()
	const waiting = 3000
	over, asked := countingStore()
	s := start(t, over)
	messages := sidebusv1.NewMessagesClient(s.shared)
	got := make(chan string, waiting)
	for range waiting {
		go func() {
			received, err := messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(time.Minute)})
			if err != nil || len(received.GetMessages()) != 1 {
				got <- fmt.Sprint(received, err)
				return
			}
			got <- received.GetMessages()[0].GetText()
		}()
	}
	eventually(t, "all wait", func() bool { return asked.Load() >= waiting })
	for i := range waiting {
		_, err := messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: fmt.Sprint(i)}}}})
		must(t, err)
	}
	seen := map[string]bool{}
	for range waiting {
		seen[<-got] = true
	}
	if len(seen) != waiting {
		t.Errorf("%d different answers, want %d", len(seen), waiting)
	}
}

// A client that does not read gets THROTTLED for what takes memory, and keeps no other client from receiving for long.
func TestMultiplexClientNeverReads(t *testing.T) {
	t.Parallel()
	const memory = 8 << 20
	s := start(t, memstore.New(), func(c *proxy.Config) { c.RequestMemory, c.RequestTime = memory, time.Second })
	mustPatch(t, s, `{"maxMessageSizeInKilobytes":2048}`)
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 1<<20)}}}})
	must(t, err)
	conn := dial(t, s.proxy.GRPCAddr().String())
	stream, err := sidebusv1.NewCallsClient(conn).Multiplex(t.Context())
	must(t, err)
	request := &sidebusv1.MultiplexRequest{}
	for id := range uint64(100) {
		request.Calls = append(request.Calls, callOf(t, id+1, sidebusv1.Messages_Peek_FullMethodName, &sidebusv1.PeekRequest{Source: orders}))
	}
	must(t, stream.Send(request))
	eventually(t, "no memory is left for answers", func() bool { return s.sum(t, "sidebus_answers_refused_total") > 0 })
	if held := s.sum(t, "sidebus_answer_memory_bytes"); held > memory+4*(1<<20) {
		t.Errorf("answers hold %v bytes", held)
	}
	eventually(t, "another client can peek", func() bool {
		_, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders})
		return err == nil
	})
}

// A sidecar that stops answers what it has read, ends the stream with OK, and does not wait for the client.
func TestMultiplexStop(t *testing.T) {
	t.Parallel()
	over, asked := countingStore()
	s := start(t, over)
	e := openExchange(t, s)
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{
		callOf(t, 7, sidebusv1.Messages_Receive_FullMethodName, &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(time.Minute)}),
	}}))
	eventually(t, "the receive waits", func() bool { return asked.Load() >= 1 })
	s.stop()
	var answered []uint64
	var closing *sidebusv1.MultiplexResponse_Closing
	for {
		response, err := e.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		for _, a := range response.GetAnswers() {
			answered = append(answered, a.GetId())
		}
		closing = response.GetClosing()
	}
	if !slices.Equal(answered, []uint64{7}) || closing.GetLastId() != 7 {
		t.Errorf("answered %v, closing %v", answered, closing)
	}
	wait(t, "end of Run", s.done)
}

// A connection whose stream carries no call is idle: it makes way for others, and its client connects again unnoticed.
func TestQUOTA_5_IdleMultiplexMakesWay(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(10))
	var idle []sidebusv1.MessagesClient
	for range 30 {
		messages := sidebusv1.NewMessagesClient(multiplexed(t, s.proxy))
		if _, err := messages.Receive(t.Context(), receiveNow()); err != nil {
			t.Fatal(err)
		}
		idle = append(idle, messages)
	}
	for i, messages := range idle {
		if _, err := messages.Receive(t.Context(), receiveNow()); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	}
}

func reasonIn(t *testing.T, encoded []byte) string {
	t.Helper()
	failure := &spb.Status{}
	must(t, proto.Unmarshal(encoded, failure))
	err := status.ErrorProto(failure)
	if status.Code(err) == codes.Unimplemented {
		return codes.Unimplemented.String()
	}
	return reasonOf(t, err)
}
