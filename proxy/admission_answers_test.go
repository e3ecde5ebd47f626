package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// largeBody is more than connections buffer that are not read.
const largeBody = 16 * mebibyte

// cutOff bounds the time of reading so far that a test can wait for it, and a busy machine can keep to it.
func cutOff(c *proxy.Config) { c.RequestTime = 4 * time.Second }

// withLarge makes the queue "large" with so many large messages.
func withLarge(t *testing.T, s *sidecar, n int) {
	t.Helper()
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
	request := sendOf(largeBody)
	request.Target = "queues/large"
	for range n {
		if _, err := s.messages.Send(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0") // a moment after the answer
	}
}

// unread begins a call over gRPC whose answer is not read until leave, and gives the call.
func unread(t *testing.T, conn *grpc.ClientConn, method string, request proto.Message) (call grpc.ClientStream, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.MaxCallRecvMsgSize(2*largeBody))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(request); err != nil {
		t.Fatal(err)
	}
	if method != sidebusv1.Messages_Subscribe_FullMethodName {
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	return stream, cancel
}

// holdsAnswer waits until an answer holds memory.
func (s *sidecar) holdsAnswer(t *testing.T) {
	t.Helper()
	eventually(t, "an answer holds memory", func() bool {
		return !strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, "sidebus_answer_memory_bytes 0\n")
	})
}

func peekLarge() *sidebusv1.PeekRequest { return &sidebusv1.PeekRequest{Source: "queues/large"} }

// wantNoAnswer checks that large messages find no memory, that none is lost or counted by that, and that sends go on.
func wantNoAnswer(t *testing.T, s *sidecar) {
	t.Helper()
	_, peek := s.messages.Peek(t.Context(), peekLarge())
	_, receive := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/large"})
	for name, err := range map[string]error{"peek": peek, "receive": receive} {
		if status.Code(err) != codes.ResourceExhausted || infoOf(t, err).GetReason() != "THROTTLED" || pauseOf(err) != time.Second {
			t.Errorf("%s: got %v, want THROTTLED", name, err)
		}
	}
	a := s.request(t, http.MethodPost, "http://"+s.proxy.HTTPAddr().String()+"/v1/queues/large/messages:peek", "{}")
	if reason, _ := a.reason(t); a.status != http.StatusTooManyRequests || reason != "THROTTLED" {
		t.Errorf("HTTP: got %d %s", a.status, a.body)
	}
	s.send(t, "what is sent goes on")
}

// wantRead checks that the message can be received, for the first time.
func wantRead(t *testing.T, s *sidecar) {
	t.Helper()
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
	response, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/large"}, grpc.MaxCallRecvMsgSize(2*largeBody))
	if err != nil || len(response.GetMessages()) != 1 || response.GetMessages()[0].GetDeliveryCount() != 1 {
		t.Errorf("when there is memory again: got %d messages, %v", len(response.GetMessages()), err)
	}
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
}

// An answer that its client does not read holds its memory, and others find none, until it is read or the call ends.
func TestTHR_2_AnswersThatAreNotReadAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(8*mebibyte))
	withLarge(t, s, 1)
	for name, end := range map[string]func(call grpc.ClientStream, leave func()){
		"read": func(call grpc.ClientStream, _ func()) {
			if err := call.RecvMsg(&sidebusv1.PeekResponse{}); err != nil {
				t.Error(err)
			}
		},
		"cancelled": func(_ grpc.ClientStream, leave func()) { leave() },
	} {
		t.Log(name)
		call, leave := unread(t, dial(t, s.proxy.GRPCAddr().String()), sidebusv1.Messages_Peek_FullMethodName, peekLarge())
		s.holdsAnswer(t)
		wantNoAnswer(t, s)
		end(call, leave)
		s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
	}
	c := rawDial(t, s.proxy.HTTPAddr())
	c.ask(t, http.MethodPost, "/v1/queues/large/messages:peek", 2, "{}")
	s.holdsAnswer(t)
	wantNoAnswer(t, s)
	if a, ok := c.answer(t); !ok || a.status != http.StatusOK {
		t.Errorf("HTTP: got %d", a.status)
	}
	wantRead(t, s)
}

// What a receive has locked for an answer that finds no memory is given back, uncounted, however many ask at once.
func TestRECV_7_WhatFindsNoMemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(mebibyte))
	const all = 4
	withLarge(t, s, all)
	var work sync.WaitGroup
	received := make(chan *sidebusv1.ReceivedMessage, all)
	for range all {
		work.Go(func() {
			for {
				response, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/large"}, grpc.MaxCallRecvMsgSize(2*largeBody))
				if err == nil && len(response.GetMessages()) == 1 {
					received <- response.GetMessages()[0]
					return
				}
				if status.Code(err) != codes.ResourceExhausted {
					t.Errorf("got %v, %v", response, err)
					return
				}
			}
		})
	}
	work.Wait()
	close(received)
	for m := range received {
		if m.GetDeliveryCount() != 1 {
			t.Errorf("message %d: got delivery %d", m.GetSequenceNumber(), m.GetDeliveryCount())
		}
	}
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
}

// A client that never reads is cut off, over both wires, and gives back what it holds.
func TestTHR_2_ClientsThatNeverReadAreCutOff(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(8*mebibyte), cutOff)
	withLarge(t, s, 1)
	_, _ = unread(t, dial(t, s.proxy.GRPCAddr().String()), sidebusv1.Messages_Peek_FullMethodName, peekLarge())
	s.eventuallyMeasured(t, "sidebus_answers_late_total 1")
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
	c := rawDial(t, s.proxy.HTTPAddr())
	c.ask(t, http.MethodPost, "/v1/queues/large/messages:peek", 2, "{}")
	s.eventuallyMeasured(t, "sidebus_answers_late_total 2")
	wantRead(t, s)
}

// A stream that is not read holds its memory, and is cut off only when others need that.
func TestRECV_12_StreamsThatAreNotReadMakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(8*mebibyte), cutOff)
	withLarge(t, s, 2)
	open := &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: "queues/large"}}}
	call, leave := unread(t, dial(t, s.proxy.GRPCAddr().String()), sidebusv1.Messages_Subscribe_FullMethodName, open)
	s.holdsAnswer(t)
	<-time.After(6 * time.Second) // longer than the limit after which it is cut off when its memory is needed
	for range 2 {                 // the opening and the message
		if err := call.RecvMsg(&sidebusv1.SubscribeResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
	leave()
	_, _ = unread(t, dial(t, s.proxy.GRPCAddr().String()), sidebusv1.Messages_Subscribe_FullMethodName, open)
	s.holdsAnswer(t)
	eventually(t, "it makes room", func() bool {
		_, _ = s.messages.Peek(t.Context(), peekLarge(), grpc.MaxCallRecvMsgSize(2*largeBody))
		return strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, "sidebus_answers_late_total 1\n")
	})
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
}

// A stream gives back what was read although it never pauses, and what it fetched ahead.
func TestRECV_12_StreamsGiveBackWhatWasRead(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(4*mebibyte))
	for range 40 {
		if _, err := s.messages.Send(t.Context(), sendOf(200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := s.messages.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{
		Source: orders, Credits: new(int32(50)), Prefetch: 20, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE,
	}}}); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < 40; {
		response, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range response.GetDeliveries().GetDeliveries() {
			got += len(d.GetMessages())
		}
	}
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
}

// However calls with large answers end, their memory comes back.
func TestTHR_2_MemoryOfAnswersComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(64*mebibyte))
	withLarge(t, s, 1)
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() {
			conn := dial(t, s.proxy.GRPCAddr().String())
			ctx := t.Context()
			switch i % 4 {
			case 0: // the client hangs up amidst
				time.AfterFunc(time.Duration(i)*time.Millisecond, func() { _ = conn.Close() })
			case 1: // the message is too large for it
				_, _ = sidebusv1.NewMessagesClient(conn).Peek(ctx, peekLarge())
				return
			case 2:
				_ = s.request(t, http.MethodPost, "http://"+s.proxy.HTTPAddr().String()+"/v1/queues/large/messages:peek", "{}")
				return
			}
			_, _ = sidebusv1.NewMessagesClient(conn).Peek(ctx, peekLarge(), grpc.MaxCallRecvMsgSize(2*largeBody))
		})
	}
	work.Wait()
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
}

// Lists are counted too.
func TestTHR_2_ListsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(mebibyte))
	mustPut(t, s, "/v1/queues/s", `{"requiresSession":true}`)
	session, err := s.sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: "queues/s", SessionId: new("a")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.sessions.SetState(t.Context(), &sidebusv1.SessionsSetStateRequest{
		Source: "queues/s", LockToken: session.GetSession().GetLockToken(), State: []byte(strings.Repeat("x", 200<<10)),
	})
	if err != nil {
		t.Fatal(err)
	}
	withLarge(t, s, 1)
	get := &sidebusv1.SessionsGetStateRequest{Source: "queues/s", LockToken: session.GetSession().GetLockToken()}
	_, leave := unread(t, dial(t, s.proxy.GRPCAddr().String()), sidebusv1.Messages_Peek_FullMethodName, peekLarge())
	s.holdsAnswer(t)
	_, err = s.sessions.GetState(t.Context(), get)
	if semantics.Code(infoOf(t, err).GetReason()) != semantics.Throttled {
		t.Errorf("got %v", err)
	}
	leave()
	s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
	if _, err = s.sessions.GetState(t.Context(), get); err != nil {
		t.Error(err)
	}
}
