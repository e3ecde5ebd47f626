package grpcapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// maxMultiplexRequest is the largest request of a Multiplex stream. It is that of requests which are admitted although
// large ones have used up the memory, so that no other limit can end the stream with all its calls.
const maxMultiplexRequest = 64 << 10

// maxMultiplexCalls is how many calls a request may have. Calls that name an RPC are at most 2,500: each takes much
// more memory than the shortest field that decodes as one.
const maxMultiplexCalls = 10_000

// multiplexer serves sidebus.v1.Calls: it runs the unary calls of the other services as their RPCs do.
type multiplexer struct {
	sidebusv1.UnimplementedCallsServer

	workers   workers
	methods   map[string]method // by full name
	responses *response.Tracker
	stopping  <-chan struct{}
}

// method is a unary RPC.
type method struct {
	service  any
	call     unaryCall
	delivers bool // messages or a session
}

// Multiplex runs the calls of a stream.
func (c *multiplexer) Multiplex(
	stream grpc.BidiStreamingServer[sidebusv1.MultiplexRequest, sidebusv1.MultiplexResponse],
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	admitted := admission.BeginMultiplex(ctx)
	m := &multiplex{multiplexer: c, admitted: admitted, unanswered: map[uint64]*multiplexedCall{}}
	m.answers = newAnswerQueue(func(response mem.BufferSlice) error {
		admitted.Sent()
		return stream.SendMsg(response)
	}, func() int { return int(m.count.Load()) })
	c.workers.open()
	defer c.workers.close()
	ended := make(chan error, 1)
	go func() {
		tell := func(err error) { ended <- err }
		defer catch(tell)
		tell(m.read(ctx, stream))
	}()
	var err error
	isClosing := false
	select {
	case err = <-ended:
	case <-c.stopping:
		isClosing = true
	case <-admitted.Ending():
		isClosing = true
	}
	if err != nil && !errors.Is(err, io.EOF) {
		cancel() // the client gets no more answers
	}
	last := m.close()
	m.running.Wait()
	rethrow(err)
	switch {
	case isClosing:
		admitted.Sent()
		return stream.Send(&sidebusv1.MultiplexResponse{Closing: &sidebusv1.MultiplexResponse_Closing{LastId: last}})
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// multiplex is one stream.
type multiplex struct {
	*multiplexer

	admitted *admission.Multiplex
	answers  *answerQueue
	running  sync.WaitGroup // calls whose answers have not been sent
	count    atomic.Int64   // of them

	mu         sync.Mutex
	isClosed   bool   // no more calls are run
	last       uint64 // id of the last call that was run
	unanswered map[uint64]*multiplexedCall
}

// multiplexedCall is one call. finish ends it.
type multiplexedCall struct {
	calledMethod

	of          *multiplex
	ctx         context.Context //nolint:containedctx // of this call
	cancel      context.CancelFunc
	admitted    *admission.Call    // nil: it was refused
	response    *response.Response // nil: it delivers nothing
	isCancelled atomic.Bool        // by the client, which waits for no answer
}

// read starts the calls of the stream until the client closes its side, io.EOF, or a request is invalid. When no more
// calls are run, it still cancels those that are.
func (m *multiplex) read(ctx context.Context, stream grpc.ServerStream) error {
	var request multiplexRequest
	for receive := receiver(stream, &request); ; {
		m.answers.awaitSpace()
		if err := receive(); err != nil {
			return err
		}
		err := m.accept(ctx, &request)
		request = multiplexRequest{} // which may be silent for long
		m.admitted.RequestHandled()
		if err != nil {
			return err
		}
	}
}

// accept starts the calls of a request and cancels those that it names.
func (m *multiplex) accept(ctx context.Context, request *multiplexRequest) error {
	if request.err != nil {
		return request.err
	}
	for _, named := range request.calls {
		if request.size > maxMultiplexRequest {
			named.err = semantics.SizeExceeded("request", int64(request.size), maxMultiplexRequest)
		}
		c := &multiplexedCall{calledMethod: named, of: m}
		if named.timeout != nil {
			c.ctx, c.cancel = context.WithTimeout(ctx, *named.timeout)
		} else {
			c.ctx, c.cancel = context.WithCancel(ctx)
		}
		isOpen, err := m.begin(c)
		if err != nil || !isOpen {
			c.cancel()
		}
		if err != nil {
			return err
		}
		if !isOpen {
			break
		}
		m.workers.start(c)
	}
	for _, id := range request.cancelled {
		m.cancel(id)
	}
	return nil
}

// begin counts a call, which must be finished. It reports false if the stream accepts no more.
func (m *multiplex) begin(c *multiplexedCall) (isOpen bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isClosed {
		return false, nil
	}
	if c.id <= m.last {
		return true, semantics.InvalidField("calls", "must have ids that are higher than those of earlier calls")
	}
	m.last = c.id
	m.unanswered[c.id] = c
	m.running.Add(1)
	m.count.Add(1)
	return true, nil
}

// close lets no further call begin, and returns the id of the last one.
func (m *multiplex) close() (last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isClosed = true
	return m.last
}

// cancel cancels a call, unless it has been answered.
func (m *multiplex) cancel(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.unanswered[id]; c != nil {
		c.isCancelled.Store(true)
		c.cancel()
	}
}

// run runs a call and queues its answer.
func (m *multiplex) run(c *multiplexedCall) {
	answer, err := m.answer(c)
	if err != nil {
		m.fail(c, err)
		return
	}
	answer.call = c
	answer.finished = func(written bool) {
		if written || c.response == nil {
			m.finish(c, written)
			return
		}
		go m.fail(c, errNotAwaited()) // it releases messages, in a round trip to the store
	}
	m.answers.add(&answer)
}

// fail releases what a call has locked for its answer, and queues its failure.
func (m *multiplex) fail(c *multiplexedCall, err error) {
	c.respond(false)
	failure, _ := proto.Marshal(status.Convert(err).Proto()) // its texts are UTF-8
	answer := encodeFailure(c.id, failure)
	answer.call = c
	answer.finished = func(written bool) { m.finish(c, written) }
	m.answers.add(&answer)
}

// errNotAwaited is the failure of a call whose client does not wait for the answer any more.
func errNotAwaited() error { return wireerror.Status(wireerror.Of(context.Canceled)).Err() }

// isAwaited reports whether the client waits for the answer. What a call delivers must not reach a client that has
// cancelled it, or whose time has passed (RECV-7).
func (c *multiplexedCall) isAwaited() bool {
	return !c.isCancelled.Load() && (c.response == nil || c.ctx.Err() == nil)
}

// answer runs a call and encodes its response.
func (m *multiplex) answer(c *multiplexedCall) (multiplexAnswer, error) {
	response, err := m.call(c)
	if err != nil {
		return multiplexAnswer{}, err
	}
	if !c.isAwaited() {
		return multiplexAnswer{}, errNotAwaited()
	}
	answer, err := encodeAnswer(c.id, response.(proto.Message))
	if err != nil {
		return answer, status.Errorf(codes.Internal, "the response cannot be encoded: %v", err)
	}
	return answer, nil
}

// call runs a call as its RPC does.
func (m *multiplex) call(c *multiplexedCall) (answer any, err error) {
	if c.err != nil {
		return nil, wireerror.Status(wireerror.Of(c.err)).Err()
	}
	method, known := m.methods[c.method]
	if !known {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %.100q", c.method)
	}
	ctx, admitted, err := m.admitted.BeginCall(c.ctx, len(c.request))
	if err != nil {
		return nil, wireerror.Status(wireerror.Of(err)).Err()
	}
	c.admitted = admitted
	if c.metadata != nil {
		ctx = metadata.NewIncomingContext(ctx, c.metadata)
	}
	if method.delivers {
		ctx, c.response = m.responses.Begin(ctx)
	}
	c.ctx = ctx
	return method.call(method.service, ctx, c.decode)
}

// decode reads the request of the call. A call that waits does not keep its request, because it would keep those of all
// calls that came with it.
func (c *calledMethod) decode(into any) error {
	request := mem.SliceBuffer(c.request)
	c.request = nil
	return codec{protoCodec}.Unmarshal(mem.BufferSlice{request}, into)
}

// finish ends a call whose answer was written, or not.
func (m *multiplex) finish(c *multiplexedCall, written bool) {
	defer m.running.Done()
	c.respond(written)
	c.cancel()
	if c.admitted != nil {
		c.admitted.End()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unanswered, c.id)
	m.count.Add(-1)
}

// respond notes whether the messages or the session of the call were written.
func (c *multiplexedCall) respond(written bool) {
	if c.response != nil {
		c.response.Finish(c.ctx, written)
		c.response = nil
	}
}
