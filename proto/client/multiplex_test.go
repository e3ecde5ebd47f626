package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// fakeSidecar stores nothing. It has the stream for calls if a test sets carry.
type fakeSidecar struct {
	sidebusv1.UnimplementedMessagesServer
	sidebusv1.UnimplementedCallsServer

	alone   atomic.Int32 // calls that were RPCs of their own
	streams atomic.Int32
	carry   func(n int32, stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error
}

// Send answers an RPC of its own.
func (f *fakeSidecar) Send(context.Context, *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
	f.alone.Add(1)
	return &sidebusv1.SendResponse{}, nil
}

// Multiplex runs what the test has set.
func (f *fakeSidecar) Multiplex(stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error {
	return f.carry(f.streams.Add(1), stream)
}

// serve runs a fakeSidecar and returns its target.
func (f *fakeSidecar) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	sidebusv1.RegisterMessagesServer(server, f)
	if f.carry != nil {
		sidebusv1.RegisterCallsServer(server, f)
	}
	go server.Serve(listener) //nolint:errcheck // ends with the test
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func sendTo(ctx context.Context, c *client.Client, size int) error {
	m := &sidebusv1.Message{Content: &sidebusv1.Message_Body{Body: make([]byte, size)}}
	_, err := sidebusv1.NewMessagesClient(c.Conn()).Send(ctx, &sidebusv1.SendRequest{Target: "queues/q", Messages: []*sidebusv1.Message{m}})
	return err
}

// A sidecar without the stream gets RPCs, and so does one with it if the client is to make them or the call is large.
func TestCallsThatNoStreamCarries(t *testing.T) {
	t.Parallel()
	older := &fakeSidecar{}
	c := connect(t, older.serve(t), nil)
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			if err := sendTo(t.Context(), c, 1); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if n := older.alone.Load(); n != 20 {
		t.Errorf("the older sidecar got %d calls", n)
	}
	newer := &fakeSidecar{carry: func(_ int32, stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error {
		return answerAll(stream, nil)
	}}
	target := newer.serve(t)
	for _, options := range []*client.Options{
		{SeparateCalls: true}, {DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}},
	} {
		if err := sendTo(t.Context(), connect(t, target, options), 1); err != nil {
			t.Error(err)
		}
	}
	c = connect(t, target, nil)
	for _, call := range []func() error{
		func() error { return sendTo(t.Context(), c, 1<<20) },
		func() error { return sendTo(metadata.AppendToOutgoingContext(t.Context(), "a-bin", "\xff"), c, 1) },
		func() error { // gRPC refuses it, and the stream, with its other calls, does not get it
			err := sendTo(metadata.AppendToOutgoingContext(t.Context(), "a", "\xff"), c, 1)
			if status.Code(err) != codes.Internal {
				return fmt.Errorf("text that is not UTF-8: got %w", err)
			}
			return nil
		},
		func() error {
			var header metadata.MD
			_, err := sidebusv1.NewMessagesClient(c.Conn()).Send(t.Context(), &sidebusv1.SendRequest{}, grpc.Header(&header))
			return err
		},
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	if n, streams := newer.alone.Load(), newer.streams.Load(); n != 5 || streams > 1 {
		t.Errorf("the newer sidecar got %d calls, and %d streams", n, streams)
	}
	if err := sendTo(t.Context(), c, 1); err != nil || newer.alone.Load() != 5 || newer.streams.Load() != 1 {
		t.Errorf("a small call: got %v, %d calls, %d streams", err, newer.alone.Load(), newer.streams.Load())
	}
}

// answerAll answers each call of a stream that see, which may be nil, accepts.
func answerAll(stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse], see func(*sidebusv1.MultiplexRequest_Call)) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		response := &sidebusv1.MultiplexResponse{}
		for _, call := range request.GetCalls() {
			if see != nil {
				see(call)
			}
			response.Answers = append(response.Answers, &sidebusv1.MultiplexResponse_Answer{Id: call.GetId()})
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// Calls that a sidecar did not run, because it closed the stream, are made on the next one; calls of a stream that broke
// are not repeated, because they may have been run.
func TestCallsOfAStreamThatEnds(t *testing.T) {
	t.Parallel()
	f := &fakeSidecar{carry: func(n int32, stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error {
		switch n {
		case 1:
			if _, err := stream.Recv(); err != nil {
				return err
			}
			return stream.Send(&sidebusv1.MultiplexResponse{Closing: &sidebusv1.MultiplexResponse_Closing{}})
		case 3:
			if _, err := stream.Recv(); err != nil {
				return err
			}
			return nil // without an answer
		default:
			request, err := stream.Recv()
			if err != nil {
				return err
			}
			id := request.GetCalls()[0].GetId()
			return stream.Send(&sidebusv1.MultiplexResponse{
				Answers: []*sidebusv1.MultiplexResponse_Answer{{Id: id}}, Closing: &sidebusv1.MultiplexResponse_Closing{LastId: id},
			})
		}
	}}
	c := connect(t, f.serve(t), nil)
	if err := sendTo(t.Context(), c, 1); err != nil || f.streams.Load() != 2 {
		t.Errorf("a call that was not run: got %v, %d streams", err, f.streams.Load())
	}
	err := sendTo(t.Context(), c, 1)
	if e := client.ErrorOf(err); e == nil || e.Code != client.CodeConnectionLost || !e.OutcomeUnknown || f.streams.Load() != 3 {
		t.Errorf("a call without an answer: got %v, %d streams", err, f.streams.Load())
	}
	if err := sendTo(t.Context(), c, 1); err != nil || f.streams.Load() != 4 {
		t.Errorf("the next call: got %v, %d streams", err, f.streams.Load())
	}
	if n := f.alone.Load(); n != 0 {
		t.Errorf("%d calls were RPCs of their own", n)
	}
	var work sync.WaitGroup
	for range 200 { // each stream runs one of them
		work.Go(func() {
			if err := sendTo(t.Context(), c, 1); err != nil {
				t.Errorf("one of many calls: %v", err)
			}
		})
	}
	work.Wait()
}

// Whatever a stream ends with, calls that were written to it may have been run. THROTTLED and INVALID_ARGUMENT of the
// stream do not mean that its calls had no effect, so the client must not repeat them as if.
func TestERR_6_CallsOfAStreamThatFailsAreUnknown(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.InvalidArgument, codes.Unimplemented, codes.Unauthenticated, codes.Internal} {
		f := &fakeSidecar{carry: func(_ int32, stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error {
			request, err := stream.Recv()
			if err != nil {
				return err
			}
			if err := stream.Send(&sidebusv1.MultiplexResponse{Answers: []*sidebusv1.MultiplexResponse_Answer{{Id: request.GetCalls()[0].GetId()}}}); err != nil {
				return err
			}
			if _, err := stream.Recv(); err != nil {
				return err
			}
			return status.Error(code, "no")
		}}
		c := connect(t, f.serve(t), nil)
		if err := sendTo(t.Context(), c, 1); err != nil {
			t.Fatal(err)
		}
		err := sendTo(t.Context(), c, 1)
		if e := client.ErrorOf(err); e == nil || e.Code != client.CodeConnectionLost || !e.OutcomeUnknown {
			t.Errorf("%s: got %+v", code, e)
		}
		if n := f.alone.Load(); n != 0 {
			t.Errorf("%s: the call was repeated", code)
		}
	}
}

// A stream that the sidecar refuses to the caller has run nothing: its calls fail with the reason.
func TestCallsOfAStreamThatIsRefused(t *testing.T) {
	t.Parallel()
	f := &fakeSidecar{carry: func(int32, grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error {
		return status.Error(codes.Unauthenticated, "no")
	}}
	c := connect(t, f.serve(t), nil)
	if err := sendTo(t.Context(), c, 1); status.Code(err) != codes.Unauthenticated {
		t.Errorf("got %v", err)
	}
}

// A call has its method, deadline, metadata and token, and its cancellation arrives.
func TestWhatAStreamCarries(t *testing.T) {
	t.Parallel()
	calls := make(chan *sidebusv1.MultiplexRequest_Call, 1)
	cancelled := make(chan []uint64, 1)
	f := &fakeSidecar{carry: func(_ int32, stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse]) error {
		for {
			request, err := stream.Recv()
			if err != nil {
				return err
			}
			for _, call := range request.GetCalls() {
				calls <- call
			}
			if len(request.GetCancelled()) > 0 {
				cancelled <- request.GetCancelled()
			}
		}
	}}
	c := connect(t, f.serve(t), &client.Options{SharedAccessKeyName: "root", SharedAccessKey: "k"})
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-1"), time.Hour)
	ended := make(chan error, 1)
	go func() { ended <- sendTo(ctx, c, 100) }()
	call := <-calls
	request := &sidebusv1.SendRequest{}
	if err := proto.Unmarshal(call.GetRequest(), request); err != nil || len(request.GetMessages()[0].GetBody()) != 100 {
		t.Errorf("got %v, %v", request, err)
	}
	if timeout := call.GetTimeout().AsDuration(); timeout <= 59*time.Minute || timeout > time.Hour {
		t.Errorf("timeout %v", timeout)
	}
	if with := call.GetMetadata(); call.GetMethod() != sidebusv1.Messages_Send_FullMethodName || with["traceparent"] != "00-1" ||
		!strings.HasPrefix(with["authorization"], "SharedAccessSignature ") {
		t.Errorf("got %v", call)
	}
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("the cancelled call: got %v", err)
	}
	if ids := <-cancelled; len(ids) != 1 || ids[0] != call.GetId() {
		t.Errorf("cancelled %v, want %d", ids, call.GetId())
	}
}

// A call that a killed sidecar has not answered may have taken effect; the next calls go to its successor.
func TestCallOfAKilledSidecar(t *testing.T) {
	t.Parallel()
	s := startSidecar(t)
	c := connect(t, s.target(), nil)
	mustQueue(t.Context(), c, "q", nil)
	messages := sidebusv1.NewMessagesClient(c.Conn())
	waits := make(chan error, 1)
	go func() {
		_, err := messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/q", MaxWait: durationpb.New(time.Minute)})
		waits <- err
	}()
	send(t, c, "q", "x") // is received, so the call has arrived before the kill or gets the message
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/q", MaxWait: durationpb.New(time.Minute)})
		waits <- err
	}()
	if _, err := messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: "queues/q"}); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if err := <-waits; status.Code(err) != codes.Unavailable || !client.ErrorOf(err).OutcomeUnknown {
		t.Errorf("the waiting call: got %v", err)
	}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustQueue(t.Context(), c, "q", nil)
	send(t, c, "q", "y")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := sendTo(t.Context(), c, 1); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("after Close: got %v", err)
	}
}
