package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

const mebibyte = 1 << 20

func requestMemory(n int64) func(*proxy.Config) {
	return func(c *proxy.Config) { c.RequestMemory = n }
}

func sendOf(size int) *sidebusv1.SendRequest {
	return &sidebusv1.SendRequest{
		Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, size)}}},
	}
}

// A message for which there is no memory is refused before it arrives, in a way that makes the client try again.
func TestTHR_1_NoMemoryIsThrottled(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(8*mebibyte))
	busy := rawDial(t, s.proxy.HTTPAddr())
	busy.ask(t, http.MethodPost, verbPath+"send", 7*mebibyte, "{")
	eventually(t, "its memory is taken", func() bool {
		return strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, "sidebus_request_memory_bytes 2.9360128e+07\n")
	})
	_, err := s.messages.Send(t.Context(), sendOf(mebibyte))
	if status.Code(err) != codes.ResourceExhausted || infoOf(t, err).GetReason() != "THROTTLED" || pauseOf(err) != time.Second {
		t.Errorf("gRPC: got %v, want THROTTLED", err)
	}
	s.eventuallyMeasured(t, `sidebus_rpc_duration_seconds_count{code="CANCELLED",method="Messages.Send",wire="grpc"} 1`)
	s.send(t, "what is small goes on, on the same connection")
	c := rawDial(t, s.proxy.HTTPAddr())
	c.ask(t, http.MethodPost, verbPath+"send", 7*mebibyte, "")
	a, _ := c.answer(t)
	if reason, _ := a.reason(t); a.status != http.StatusTooManyRequests || reason != "THROTTLED" || a.header.Get("Retry-After") != "1" {
		t.Errorf("HTTP: got %d %v %s", a.status, a.header, a.body)
	}
	_ = busy.Close()
	s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
	_, err = s.messages.Send(t.Context(), sendOf(100<<10))
	if err != nil {
		t.Errorf("when there is memory again: %v", err)
	}
}

// However requests end, their memory comes back.
func TestTHR_2_MemoryComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(64*mebibyte))
	mustPatch(t, s, `{"maxMessageSizeInKilobytes":102400}`)
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() {
			conn := dial(t, s.proxy.GRPCAddr().String())
			messages := sidebusv1.NewMessagesClient(conn)
			ctx := t.Context()
			if i%4 == 0 { // the client hangs up amidst
				time.AfterFunc(time.Duration(i)*time.Millisecond, func() { _ = conn.Close() })
			}
			_, _ = messages.Send(ctx, sendOf(i*200<<10))
			_ = s.request(t, http.MethodPost, "http://"+s.proxy.HTTPAddr().String()+"/orders/messages", string(make([]byte, i*20<<10)))
			publish, err := messages.Publish(ctx)
			if err != nil {
				return
			}
			_ = publish.Send(&sidebusv1.PublishRequest{Target: orders, Messages: sendOf(i * 50 << 10).GetMessages()})
			_, _ = publish.Recv()
			_ = publish.CloseSend()
			_, _ = publish.Recv()
		})
	}
	work.Wait()
	s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
}

// A stream that goes on without a request keeps no memory, else one large message would be the last one for everybody.
func TestTHR_2_SilentStreamsHoldNoMemory(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(mebibyte))
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
	publish, err := s.messages.Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{2 * mebibyte, 3 * mebibyte} {
		if err := publish.Send(&sidebusv1.PublishRequest{Target: "queues/large", Messages: sendOf(size).GetMessages()}); err != nil {
			t.Fatal(err)
		}
		if response, err := publish.Recv(); err != nil || response.GetSent() == nil {
			t.Fatalf("got %v, %v", response, err)
		}
		s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
		if _, err := s.messages.Send(t.Context(), sendOf(100<<10)); err != nil {
			t.Errorf("a send beside the silent stream: %v", err)
		}
	}
}

// A client that sends one large message after the other, each when the last one is answered, is never refused: the memory
// of a request is free before its answer is written.
func TestTHR_2_OneLargeMessageAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"grpc", "http"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			s := start(t, memstore.New(), requestMemory(mebibyte))
			messages, _ := s.clients(wire)
			mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
			publish, err := s.messages.Publish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			request := sendOf(mebibyte)
			request.Target = "queues/large"
			for range 100 {
				if _, err := messages.Send(t.Context(), request); err != nil {
					t.Fatalf("send: %v", err)
				}
				if err := publish.Send(&sidebusv1.PublishRequest{Target: request.GetTarget(), Messages: request.GetMessages()}); err != nil {
					t.Fatal(err)
				}
				if answer, err := publish.Recv(); err != nil || answer.GetSent() == nil {
					t.Fatalf("publish: got %v, %v", answer, err)
				}
			}
		})
	}
}

// A stream that wants no answers lets go of its last message when that is stored.
func TestTHR_2_UnansweredStreamsHoldNoMemory(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(mebibyte))
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
	publish := s.publish(t)
	for i := range 3 {
		publish.send(&sidebusv1.PublishRequest{
			Target: "queues/large", Messages: sendOf(2 * mebibyte).GetMessages(), Ack: sidebusv1.PublishRequest_NONE,
		})
		s.eventuallyCounts(t, i+1, "sidebus_messages_sent_total", `entity="large"`)
		s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
	}
}

// countedReceives counts how often messages were looked for.
type countedReceives struct {
	store

	n atomic.Int64
}

// Receive counts.
func (c *countedReceives) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	c.n.Add(1)
	return c.store.Receive(ctx, source, limit, register)
}

// A receive that waits holds no memory, however large its request was, else waits would keep it from settlements.
func TestTHR_2_WaitsHoldNoMemory(t *testing.T) {
	t.Parallel()
	looks := &countedReceives{store: memstore.New()}
	s := start(t, looks, requestMemory(mebibyte))
	const large = 60_000
	body := `{"maxWait":"60s"}` + strings.Repeat(" ", large)
	for name, begin := range map[string]func(queue string){
		"http": func(queue string) {
			rawDial(t, s.proxy.HTTPAddr()).ask(t, http.MethodPost, "/v1/queues/"+queue+"/messages:receive", len(body), body)
		},
		"grpc": func(queue string) {
			request := &sidebusv1.ReceiveRequest{Source: "queues/" + queue, MaxWait: durationpb.New(time.Minute)}
			go func() { _, _ = s.messages.Receive(t.Context(), request) }() // it ends with the test
		},
	} {
		for i := range 20 {
			queue := name + strconv.Itoa(i) // of its own, else those that wait already look for it
			mustPut(t, s, "/v1/queues/"+queue, `{}`)
			before := looks.n.Load()
			begin(queue)
			eventually(t, name+": it looks for messages", func() bool {
				return looks.n.Load() > before || !strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, "sidebus_requests_refused_total 0\n")
			})
		}
		s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
		if body := s.ask(t, http.MethodGet, "/metrics").body; !strings.Contains(body, "sidebus_requests_refused_total 0\n") {
			t.Errorf("%s: waits hold memory, others were refused", name)
		}
	}
}

// A message that is larger than all memory is taken when nothing else is under way: the largest one an entity permits
// can be sent.
func TestMSG_20_TheLargestMessageIsTaken(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(mebibyte))
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":102400}`)
	request := sendOf(20 * mebibyte)
	request.Target = "queues/large"
	if _, err := s.messages.Send(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	response, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/large"}, grpc.MaxCallRecvMsgSize(64*mebibyte))
	if err != nil || len(response.GetMessages()) != 1 || !bytes.Equal(response.GetMessages()[0].GetBody(), request.GetMessages()[0].GetBody()) {
		t.Errorf("got %d messages, %v", len(response.GetMessages()), err)
	}
}

// A gRPC call whose message does not come ends with its connection; a stream may be silent.
func TestQUOTA_5_AMessageHasToArrive(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), hurried)
	quiet, err := s.messages.Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, sent := range map[string]string{"nothing": "", "a part": "\x00\x00\x01\x00\x00abc", "half a length": "\x00\x00"} {
		conn := rawDial(t, s.proxy.GRPCAddr())
		if _, err := conn.Write(halfCall(sent)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection goes on", name)
		}
	}
	if err := quiet.Send(&sidebusv1.PublishRequest{Target: orders, RequestId: "late", Messages: sendOf(10).GetMessages()}); err != nil {
		t.Fatal(err)
	}
	if response, err := quiet.Recv(); err != nil || response.GetRequestId() != "late" {
		t.Errorf("the silent stream: got %v, %v", response, err)
	}
}

// halfCall is the beginning of a connection and of a call of Messages.Send, by hand.
func halfCall(data string) []byte { return beginCall(sidebusv1.Messages_Send_FullMethodName, data) }

// beginCall is the beginning of a connection and of a call, by hand.
func beginCall(method, data string, settings ...http2.Setting) []byte {
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	framer, fields := http2.NewFramer(&out, nil), hpack.NewEncoder(&block)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		_ = fields.WriteField(field) // a buffer takes everything
	}
	_ = framer.WriteSettings(settings...)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	if data != "" {
		_ = framer.WriteDataPadded(1, false, []byte(data), make([]byte, 7))
	}
	return out.Bytes()
}
