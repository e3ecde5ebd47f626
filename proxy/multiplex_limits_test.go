package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// goroutinesIn counts the goroutines of this process that are in a function.
func goroutinesIn(functions ...string) (n int) {
	stacks := make([]byte, 64<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		isIn := true
		for _, function := range functions {
			isIn = isIn && strings.Contains(stack, function)
		}
		if isIn {
			n++
		}
	}
	return n
}

func waiting() *sidebusv1.ReceiveRequest {
	return &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(time.Minute)}
}

// However a stream ends, its goroutines, its memory and the locks of its calls are gone.
func TestMultiplexLeavesNothing(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	s := start(t, memstore.New())
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":2048}`)
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/large", Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 1<<20)}}}})
	must(t, err)
	const receive, peek = sidebusv1.Messages_Receive_FullMethodName, sidebusv1.Messages_Peek_FullMethodName
	ends := map[string]func(e exchange, cancel func()){
		"closed by the client": func(e exchange, _ func()) {
			must(t, e.Send(&sidebusv1.MultiplexRequest{Cancelled: []uint64{1}}))
			must(t, e.CloseSend())
			if response, err := e.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, %v", response, err)
			}
		},
		"left by the client": func(_ exchange, cancel func()) { cancel() },
		"refused": func(e exchange, _ func()) {
			must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 1, receive, waiting())}}))
			var err error
			for err == nil { // the call that was cancelled may be answered
				_, err = e.Recv()
			}
			if reasonOf(t, err) != "INVALID_ARGUMENT" {
				t.Errorf("got %v", err)
			}
		},
		"left unread": func(e exchange, cancel func()) {
			must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{
				callOf(t, 2, peek, &sidebusv1.PeekRequest{Source: "queues/large"}),
				callOf(t, 3, receive, &sidebusv1.ReceiveRequest{Source: "queues/large", MaxWait: &durationpb.Duration{}}),
			}}))
			eventually(t, "the answers wait for the client", func() bool { return goroutinesIn("answerQueue", "writeQuota") > 0 })
			cancel()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			e, cancel := openOwnExchange(t, s)
			must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 1, receive, waiting())}}))
			eventually(t, "the call waits", func() bool { return goroutinesIn("multiplex).run", "broker") > 0 })
			end(e, cancel)
			eventually(t, "no goroutine of a stream is left", func() bool { return goroutinesIn("grpcapi.(*multiplex") == 0 && goroutinesIn("grpcapi.(*workers") == 0 })
			s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
			s.eventuallyMeasured(t, "sidebus_answer_memory_bytes 0")
		})
	}
	got, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/large", MaxWait: &durationpb.Duration{}})
	if err != nil || len(got.GetMessages()) != 1 || got.GetMessages()[0].GetDeliveryCount() != 1 {
		t.Errorf("the message that was not delivered: got %d messages, %v", len(got.GetMessages()), err)
	}
}

// openOwnExchange opens a stream on a connection of its own, which cancel ends.
func openOwnExchange(t *testing.T, s *sidecar) (e exchange, cancel func()) {
	t.Helper()
	// The windows are fixed: one that grows would let answers leave that the client does not read.
	const window = 1 << 16
	conn := dial(t, s.proxy.GRPCAddr().String(), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))
	ctx, end := context.WithTimeout(t.Context(), patience)
	stream, err := sidebusv1.NewCallsClient(conn).Multiplex(ctx)
	must(t, err)
	cancel = func() {
		end()
		_ = conn.Close()
	}
	t.Cleanup(cancel)
	return exchange{stream}, cancel
}

// A message in RECEIVE_AND_DELETE mode whose answer waits behind others that the client does not read is available again
// when the client cancels the call, and the client does not get it.
func TestRECV_7_CancelledBehindUnreadAnswers(t *testing.T) { //nolint:paralleltest // it looks at the goroutines of the process
	s := start(t, memstore.New())
	mustPut(t, s, "/v1/queues/large", `{"maxMessageSizeInKilobytes":2048}`)
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/large", Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 1<<20)}}}})
	must(t, err)
	s.send(t, "x")
	e, _ := openOwnExchange(t, s)
	eventually(t, "the answers of other tests are gone", func() bool { return goroutinesIn("answerQueue", "writeQuota") == 0 })
	const receive, peek = sidebusv1.Messages_Receive_FullMethodName, sidebusv1.Messages_Peek_FullMethodName
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 1, peek, &sidebusv1.PeekRequest{Source: "queues/large"})}}))
	eventually(t, "the answer waits for the client", func() bool { return goroutinesIn("answerQueue", "writeQuota") > 0 })
	deleting := receiveNow()
	deleting.Mode = sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 2, receive, deleting)}}))
	s.eventuallyCounts(t, 1, "sidebus_rpcs_total", `method="Messages.Receive"`, `code="OK"`)
	must(t, e.Send(&sidebusv1.MultiplexRequest{
		Calls:     []*sidebusv1.MultiplexRequest_Call{callOf(t, 3, peek, &sidebusv1.PeekRequest{Source: orders, FromSequenceNumber: proto.Int64(1 << 40)})},
		Cancelled: []uint64{2},
	}))
	s.eventuallyCounts(t, 2, "sidebus_rpcs_total", `method="Messages.Peek"`, `code="OK"`)
	must(t, e.CloseSend())
	for {
		response, err := e.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		for _, a := range response.GetAnswers() {
			if a.GetId() == 2 {
				t.Errorf("the cancelled call was answered")
			}
		}
	}
	if got := s.receive(t); len(got) != 1 || got[0].GetDeliveryCount() != 1 {
		t.Errorf("got %v", got)
	}
}

// A request of the shortest calls is refused as a whole: each of them would take a thousand times as much memory.
func TestMultiplexTooManyCallsInARequest(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	e := openExchange(t, s)
	request := &sidebusv1.MultiplexRequest{}
	for id := range uint64(10_001) {
		request.Calls = append(request.Calls, &sidebusv1.MultiplexRequest_Call{Id: id + 1})
	}
	must(t, e.Send(request))
	if response, err := e.Recv(); reasonOf(t, err) != "INVALID_ARGUMENT" {
		t.Errorf("got %d answers, %v", len(response.GetAnswers()), err)
	}
	e = openExchange(t, s)
	must(t, e.Send(&sidebusv1.MultiplexRequest{Cancelled: make([]uint64, 70_000)}))
	if _, err := e.Recv(); reasonOf(t, err) != "INVALID_ARGUMENT" {
		t.Errorf("too many ids: got %v", err)
	}
}

// While small requests have used up their memory, a call over a stream is THROTTLED, and the other calls go on.
func TestTHR_2_NoMemoryEndsNoMultiplex(t *testing.T) {
	t.Parallel()
	over, asked := countingStore()
	s := start(t, over, requestMemory(mebibyte))
	e := openExchange(t, s)
	const receive = sidebusv1.Messages_Receive_FullMethodName
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 1, receive, waiting())}}))
	eventually(t, "the receive waits", func() bool { return asked.Load() >= 1 })
	var busy []net.Conn
	for range 5 { // 192 KiB each
		conn := rawDial(t, s.proxy.GRPCAddr())
		_, err := conn.Write(halfCall("\x00\x00\x01\x00\x00abc"))
		must(t, err)
		busy = append(busy, conn)
	}
	eventually(t, "the memory is used up", func() bool { return s.sum(t, "sidebus_request_memory_bytes") >= 5*3*(64<<10) })
	body := &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 50<<10)}}}}
	must(t, e.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 2, sidebusv1.Messages_Send_FullMethodName, body)}}))
	if got := e.answers(t, 1); got[2] != "THROTTLED" {
		t.Errorf("got %v", got)
	}
	for _, conn := range busy {
		_ = conn.Close()
	}
	s.eventuallyMeasured(t, "sidebus_request_memory_bytes 0")
	s.send(t, "x")
	if got := e.answers(t, 1); got[1] != "" {
		t.Errorf("the call that waited: got %v", got)
	}
}

// Calls that have begun to arrive must arrive, also on a stream that has been open for long; a silent stream goes on.
func TestQUOTA_5_MultiplexedCallsHaveToArrive(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), hurried)
	quiet := openExchange(t, s)
	conn := rawDial(t, s.proxy.GRPCAddr())
	_, err := conn.Write(beginCall(sidebusv1.Calls_Multiplex_FullMethodName, "\x00\x00\x00\x00\x00"))
	must(t, err)
	eventually(t, "the first request is read", func() bool {
		_, err := conn.Write(dataFrame(sizeOf(0)))
		must(t, err)
		return s.sum(t, "sidebus_request_memory_bytes") == 0
	})
	_, err = conn.Write(dataFrame("\x00\x00\x00\xff\x00abc"))
	must(t, err)
	_ = conn.SetReadDeadline(time.Now().Add(patience / 4)) // before an unanswered ping ends the connection
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection goes on")
	}
	must(t, quiet.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 1, sidebusv1.Messages_Receive_FullMethodName, receiveNow())}}))
	if got := quiet.answers(t, 1); got[1] != "" {
		t.Errorf("the silent stream: got %v", got)
	}
}

// A connection that makes way is closed, even if its client does not let the sidecar end the stream.
func TestQUOTA_5_UnreadMultiplexMakesWay(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(10), hurried)
	request, err := proto.Marshal(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{callOf(t, 1, sidebusv1.Messages_Receive_FullMethodName, receiveNow())}})
	must(t, err)
	unread := rawDial(t, s.proxy.GRPCAddr())
	_, err = unread.Write(beginCall(sidebusv1.Calls_Multiplex_FullMethodName, sizeOf(len(request))+string(request), http2.Setting{ID: http2.SettingInitialWindowSize}))
	must(t, err)
	s.eventuallyCounts(t, 1, "sidebus_rpcs_total", `method="Messages.Receive"`)
	for range 12 { // the others
		if _, err := sidebusv1.NewMessagesClient(dial(t, s.proxy.GRPCAddr().String())).Receive(t.Context(), receiveNow()); err != nil {
			t.Fatal(err)
		}
	}
	_ = unread.SetReadDeadline(time.Now().Add(patience / 4)) // as above
	if _, err := io.Copy(io.Discard, unread); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection goes on")
	}
}

// sizeOf is the prefix of a message of gRPC.
func sizeOf(n int) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)))
}

func dataFrame(data string) []byte {
	var out bytes.Buffer
	_ = http2.NewFramer(&out, nil).WriteData(1, false, []byte(data)) // a buffer takes everything
	return out.Bytes()
}
