package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Everything that is sent without waiting for answers is stored in its order, in each queue, and answered by its id.
func TestSEND_3_OrderOfAStream(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	mustPut(t, s, "/v1/queues/other", `{}`)
	p := s.publish(t)
	const n = 1000
	go func() {
		for i := range n {
			target := orders
			if i/7%2 == 1 {
				target = "queues/other"
			}
			_ = p.Send(publication(target, fmt.Sprint(i), "second"))
		}
		_ = p.CloseSend()
	}()
	numbers := map[string]int64{}
	for i := range n {
		r, err := p.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetRequestId() != fmt.Sprint(i) || len(r.GetSent().GetResults()) != 2 {
			t.Fatalf("answer %d: got %v", i, r)
		}
		queue := orders
		if i/7%2 == 1 {
			queue = "queues/other"
		}
		for _, result := range r.GetSent().GetResults() {
			if numbers[queue]++; result.GetSequenceNumber() != numbers[queue] || result.GetMessageId() == "" {
				t.Fatalf("%s: got %v, want number %d", queue, result, numbers[queue])
			}
		}
	}
	if end := p.ends(); end != "OK" {
		t.Errorf("the stream ended with %s", end)
	}
	want := 0
	for _, m := range s.receive(t) {
		for want/7%2 == 1 {
			want++
		}
		if m.GetText() != "second" && m.GetText() != fmt.Sprint(want) {
			t.Fatalf("got %q, want %d", m.GetText(), want)
		}
		if m.GetText() == "second" {
			want++
		}
	}
}

func TestSEND_3_TargetIsThatOfTheRequestBefore(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	p := s.publish(t)
	p.send(
		publication("", "nowhere"), publication(orders, "1"), publication("", "2"), publication("topics/orders", "no topic"),
		publication("", "still none"), publication(tales, "a/1"), publication("", "a/2"), publication("", "no session"),
	)
	want := "nowhere:INVALID_ARGUMENT 1 2 no topic:ENTITY_NOT_FOUND still none:ENTITY_NOT_FOUND a/1 a/2 no session:SESSION_ID_MISSING"
	if got := p.answers(8); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.wantPeeked(t, orders, "1:0 2:0")
	s.wantPeeked(t, tales, "a/1:0 a/2:0")
}

// What is wrong with one request is said of that one, as Send says it, and those around it are stored.
func TestERR_4_RefusedPublications(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	mustPut(t, s, "/v1/queues/shut", `{"status":"SEND_DISABLED"}`)
	p := s.publish(t)
	long := publication(orders, "long id")
	long.RequestId = strings.Repeat("x", 129)
	odd := publication(orders, "odd ack")
	odd.Ack = 7
	for i, c := range []struct {
		request *sidebusv1.PublishRequest
		reason  string
		details map[string]string
	}{
		{&sidebusv1.PublishRequest{RequestId: "no messages", Target: orders}, "INVALID_ARGUMENT", map[string]string{"field": "messages"}},
		{unknownField(publication(orders, "unknown")), "INVALID_ARGUMENT", map[string]string{"field": "request"}},
		{long, "INVALID_ARGUMENT", map[string]string{"field": "requestId"}},
		{odd, "INVALID_ARGUMENT", map[string]string{"field": "ack"}},
		{publication("queues/nothing", "no queue"), "ENTITY_NOT_FOUND", map[string]string{"entity": "nothing"}},
		{publication("queues/shut", "shut"), "ENTITY_DISABLED", map[string]string{"entity": "shut"}},
		{publication("queues/orders/$deadletterqueue", "dead letters"), "INVALID_OPERATION", nil},
		{publication("topics/orders", "a queue as a topic"), "ENTITY_NOT_FOUND", map[string]string{"entity": "orders"}},
		{publication("topics/t/subscriptions/s", "a subscription"), "INVALID_OPERATION", map[string]string{"entity": "t/Subscriptions/s"}},
		{publication("things/orders", "a thing"), "INVALID_ARGUMENT", map[string]string{"field": "target"}},
		{publication(orders, "big", strings.Repeat("x", 257<<10)), "MESSAGE_SIZE_EXCEEDED", map[string]string{"index": "1"}},
		{
			&sidebusv1.PublishRequest{RequestId: "empty id", Target: orders, Messages: []*sidebusv1.Message{{MessageId: proto.String("")}}},
			"INVALID_ARGUMENT",
			map[string]string{"index": "0"},
		},
	} {
		p.send(publication(orders, fmt.Sprint("good ", i)), c.request, publication(orders, fmt.Sprint("better ", i)))
		for _, want := range []string{fmt.Sprint("good ", i), c.request.GetRequestId(), fmt.Sprint("better ", i)} {
			r, err := p.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if r.GetRequestId() != want || (r.GetSent() == nil) != (want == c.request.GetRequestId()) {
				t.Fatalf("got %v, want %s", r, want)
			}
			if failure := r.GetFailure(); failure != nil {
				if failure.GetReason() != c.reason || failure.GetMessage() == "" || failure.GetRetryable() {
					t.Errorf("%s: got %v, want %s", want, failure, c.reason)
				}
				for key, value := range c.details {
					if failure.GetDetails()[key] != value {
						t.Errorf("%s: got %v, want %s %q", want, failure, key, value)
					}
				}
			}
		}
	}
	if n := s.runtime(t).GetActiveMessageCount(); n != 24 {
		t.Errorf("%d messages are stored, want 24", n)
	}
}

// With ack NONE only failures are told, and the end of the stream says that all was dealt with.
func TestSEND_4_AckNone(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	p := s.publish(t)
	const n = 700
	for i := range n {
		request := publication(orders, fmt.Sprint(i))
		request.Ack = sidebusv1.PublishRequest_NONE
		if i == 300 {
			request.Target = "queues/nothing"
		}
		p.send(request)
	}
	p.send(publication(orders, "last")) // the ack is that of each request
	if got := p.answers(2); got != "300:ENTITY_NOT_FOUND last" {
		t.Errorf("got %s", got)
	}
	if err := p.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if end := p.ends(); end != "OK" {
		t.Errorf("the stream ended with %s", end)
	}
	if got := s.runtime(t).GetActiveMessageCount(); got != n {
		t.Errorf("%d messages are stored, want %d", got, n)
	}
	s.eventuallyCounts(t, n, "sidebus_messages_sent_total", `entity="orders"`)
}

func TestSEND_3_NothingToSend(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	p := s.publish(t)
	if err := p.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if end := p.ends(); end != "OK" {
		t.Errorf("got %s", end)
	}
}

// What cannot be read ends the stream.
func TestERR_1_UnreadablePublication(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.MaxGRPCMessage = 1 << 20 })
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		p := s.publish(t)
		p.send(publication(orders, "1"))
		if got := p.answers(1); got != "1" {
			t.Errorf("got %s", got)
		}
		p.send(publication(orders, strings.Repeat("x", 2<<20)))
		if _, err := p.Recv(); status.Code(err) != codes.ResourceExhausted { // grpc-go's own word, see grpcapi.Register
			t.Errorf("got %v", err)
		}
	})
	t.Run("no protobuf", func(t *testing.T) {
		t.Parallel()
		for _, method := range []string{sidebusv1.Messages_Publish_FullMethodName, sidebusv1.Messages_Subscribe_FullMethodName} {
			desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
			stream, err := s.conn.NewStream(t.Context(), desc, method, grpc.ForceCodec(rawCodec{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.SendMsg([]byte("\x0a\xffgarbage")); err != nil {
				t.Fatal(err)
			}
			if end := endOf(t, stream.RecvMsg(&[]byte{})); end != "INVALID_ARGUMENT" {
				t.Errorf("%s: got %s", method, end)
			}
		}
	})
}

// sendStore is a memstore whose SendEach a test watches.
type sendStore struct {
	*memstore.Store

	arrived chan int      // how many calls each SendEach has
	proceed chan struct{} // each SendEach takes one
	broken  bool
}

func (s *sendStore) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	s.arrived <- len(calls)
	<-s.proceed
	if s.broken {
		panic("boom")
	}
	return s.Store.SendEach(ctx, path, calls)
}

func newSendStore() *sendStore {
	return &sendStore{Store: memstore.New(), arrived: make(chan int, 100), proceed: make(chan struct{}, 100)}
}

// What comes while a send is under way leaves together with the next one.
func TestSEND_3_WhatWaitsLeavesTogether(t *testing.T) {
	t.Parallel()
	over := newSendStore()
	s := start(t, over)
	p := s.publish(t)
	p.send(publication(orders, "first"))
	if n := <-over.arrived; n != 1 {
		t.Fatalf("%d requests at first", n)
	}
	const n = 40
	for i := range n {
		p.send(publication(orders, fmt.Sprint(i)))
	}
	most := 0
	for left := n; left > 0; {
		over.proceed <- struct{}{}
		together := <-over.arrived
		most, left = max(most, together), left-together
	}
	over.proceed <- struct{}{}
	p.answers(n + 1)
	if most < 2 {
		t.Error("every request was sent by itself")
	}
}

// A client that leaves has what it is told of, and perhaps what was under way; nothing is begun for it any more.
func TestSEND_2_ClientLeavesInTheMiddle(t *testing.T) {
	t.Parallel()
	over := newSendStore()
	s := start(t, over)
	p := s.publish(t)
	requests := []*sidebusv1.PublishRequest{publication(orders, "1"), publication(orders, "2"), publication(orders, "3")}
	for _, r := range requests {
		r.Ack = sidebusv1.PublishRequest_NONE // so that no answer fails
	}
	p.send(requests[0])
	<-over.arrived
	p.send(requests[1:]...)
	p.leave()
	_, err := p.Recv()
	if err == nil {
		t.Fatal("an answer came")
	}
	s.eventuallyMeasured(t, `sidebus_connections{wire="grpc"} 1`)
	gone := make(chan struct{})
	go func() { // the sidecar has noticed when another call on the connection was served
		defer close(gone)
		s.peeked(t, orders)
	}()
	wait(t, "another call", gone)
	over.proceed <- struct{}{} // the one under way is seen through
	eventually(t, "the message under way is stored", func() bool { return s.peeked(t, orders) == "1:0" })
	s.eventuallyMeasured(t, `sidebus_rpcs_total{code="CANCELLED",method="Messages.Publish",wire="grpc"} 1`)
	s.wantPeeked(t, orders, "1:0")
}

// When the sidecar stops, what it has read is stored and answered, and nothing else is stored.
func TestSEND_2_StopOfTheSidecar(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	s := start(t, over)
	p := s.publish(t)
	go func() { // it stops only when the stream ends
		for i := 0; p.Send(publication(orders, fmt.Sprint(i))) == nil; i++ {
		}
	}()
	if got := p.answers(1); got != "0" {
		t.Fatal(got)
	}
	s.stop()
	answered := int64(1)
	end := ""
	for end == "" {
		if _, err := p.Recv(); err != nil {
			end = endOf(t, err)
		} else {
			answered++
		}
	}
	wait(t, "end of Run", s.done)
	if end != "STORE_UNAVAILABLE" {
		t.Errorf("the stream ended with %s", end)
	}
	runtime, err := over.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || runtime.Active != answered {
		t.Errorf("%d answered, %d stored, %v", answered, runtime.Active, err)
	}
}

// A stream that its client has already closed ends with success, even if the sidecar stops.
func TestSEND_2_StopAfterTheClientHasClosed(t *testing.T) {
	t.Parallel()
	over := newSendStore()
	s := start(t, over, func(c *proxy.Config) { c.DrainTimeout = 0 })
	p := s.publish(t)
	p.send(publication(orders, "1"))
	<-over.arrived
	if err := p.CloseSend(); err != nil {
		t.Fatal(err)
	}
	s.stop()
	eventually(t, "readiness fails", func() bool { return s.broker.Draining() })
	over.proceed <- struct{}{}
	if got := p.answers(1); got != "1" {
		t.Errorf("got %s", got)
	}
	if end := p.ends(); end != "OK" && end != "STORE_UNAVAILABLE" {
		t.Errorf("got %s", end)
	}
}

func TestERR_1_PanicEndsOneStream(t *testing.T) {
	t.Parallel()
	over := newSendStore()
	s := start(t, over)
	p := s.publish(t)
	over.broken = true
	p.send(publication(orders, "1"))
	over.proceed <- struct{}{}
	if end := p.ends(); end != "INTERNAL" {
		t.Errorf("got %s", end)
	}
	if a := s.call(t, http.MethodGet, "/v1/queues/orders", ""); a.status != http.StatusOK {
		t.Errorf("the sidecar is broken: %v", a)
	}
}

// Streams that last hold the goroutines that gRPC calls are run by, and yet more calls are answered.
func TestManyStreamsBlockNoCall(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for i := range 100 { // more than there are such goroutines
		p, id := s.publish(t), fmt.Sprint("m-", i)
		p.send(publication(orders, id))
		if got := p.answers(1); got != id {
			t.Fatalf("stream %d answers %s", i, got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	taken, err := s.messages.Receive(ctx, &sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(100)})
	if err != nil || len(taken.GetMessages()) != 100 {
		t.Errorf("received %d messages: %v", len(taken.GetMessages()), err)
	}
}
