package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// askAgain is how long a sidecar that does not have the stream is called without it.
const askAgain = time.Minute

// multiplexed is a connection that makes unary calls to Sidebus over one stream of sidebus.v1.Calls, which costs much
// less than an RPC for each. It opens the stream with the first call, and again after it has ended. What the stream
// does not carry is made as an RPC of its own: large requests, calls with options, and all calls to an older sidecar.
type multiplexed struct {
	grpc.ClientConnInterface

	credentials credentials.PerRPCCredentials // of the calls, as the connection has them; nil: none

	life context.Context //nolint:containedctx // ends with close
	end  context.CancelFunc
	work sync.WaitGroup // goroutines of streams

	mu      sync.Mutex
	stream  *callStream
	missing time.Time // no stream is opened before
}

func newMultiplexed(conn grpc.ClientConnInterface, perCall credentials.PerRPCCredentials) *multiplexed {
	m := &multiplexed{ClientConnInterface: conn, credentials: perCall}
	life := context.Background() //nolint:forbidigo // belongs to the connection, not to a call
	m.life, m.end = context.WithCancel(life)
	return m
}

// close ends the stream and the calls on it. It must come after the last call has begun.
func (m *multiplexed) close() {
	m.mu.Lock()
	m.end()
	m.mu.Unlock()
	m.work.Wait()
}

// Reasons why a call was not made over a stream. It has not been run.
var (
	errNotRun  = errors.New("the stream has ended before the call was run")
	errMissing = errors.New("the sidecar does not have the stream")
	errFull    = errors.New("too many calls are in flight")
)

// Invoke makes a unary call. Its errors are those of an RPC of its own.
func (m *multiplexed) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	const tries = 3 // a stream that ends before the call is run is rare
	request, answer, isCarried := carried(method, args, reply, options)
	for range tries {
		if !isCarried {
			break
		}
		stream := m.current()
		if stream == nil {
			break
		}
		call, err := m.newCall(ctx, method, request)
		if err != nil {
			return err
		}
		if call == nil {
			break
		}
		err = stream.do(ctx, call, answer)
		switch {
		case errors.Is(err, errNotRun):
			continue
		case errors.Is(err, errMissing), errors.Is(err, errFull):
			isCarried = false
		default:
			return err
		}
	}
	return m.ClientConnInterface.Invoke(ctx, method, args, reply, options...)
}

// carried reports whether a stream can carry a call, and returns its messages.
func carried(method string, args, reply any, options []grpc.CallOption) (request, answer proto.Message, ok bool) {
	for _, option := range options {
		if _, ok := option.(grpc.StaticMethodCallOption); !ok {
			return nil, nil, false
		}
	}
	request, isRequest := args.(proto.Message)
	answer, isAnswer := reply.(proto.Message)
	return request, answer, isRequest && isAnswer && strings.HasPrefix(method, "/sidebus.v1.")
}

// current returns the stream for the next call, nil if there is none.
func (m *multiplexed) current() *callStream {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stream != nil && m.stream.isOpen() {
		return m.stream
	}
	if m.life.Err() != nil || time.Now().Before(m.missing) {
		return nil
	}
	stream := newCallStream()
	m.stream = stream
	m.work.Go(func() {
		if err := stream.run(m.life, m.ClientConnInterface); errors.Is(err, errMissing) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.missing = time.Now().Add(askAgain)
		}
	})
	return stream
}

// newCall encodes a call. It returns nil if the call is too large for the stream, or has metadata that the stream does
// not carry.
func (m *multiplexed) newCall(ctx context.Context, method string, request proto.Message) (*pendingCall, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	with, ok, err := m.metadataOf(ctx)
	if err != nil || !ok {
		return nil, err
	}
	timeout := time.Duration(0)
	if deadline, has := ctx.Deadline(); has {
		if timeout = time.Until(deadline); timeout <= 0 {
			return nil, status.FromContextError(context.DeadlineExceeded).Err()
		}
	}
	size := proto.Size(request)
	if size > maxCallRequest {
		return nil, nil //nolint:nilnil // too large
	}
	call := newPendingCall()
	call.encoded, err = appendCall(call.encoded[:0], method, request, size, timeout, with)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "grpc: error while marshaling: %v", err)
	}
	if len(call.encoded) > maxCallRequest {
		return nil, nil //nolint:nilnil // too large
	}
	return call, nil
}

// metadataOf returns the metadata of a call, and reports whether the stream can carry it.
func (m *multiplexed) metadataOf(ctx context.Context) (with map[string]string, ok bool, err error) {
	if m.credentials != nil {
		if with, err = m.credentials.GetRequestMetadata(ctx); err != nil {
			return nil, false, status.Error(codes.Unauthenticated, err.Error())
		}
	}
	outgoing, _ := metadata.FromOutgoingContext(ctx)
	for key, values := range outgoing {
		if len(values) != 1 || strings.HasSuffix(key, "-bin") || with[key] != "" || !utf8.ValidString(key+values[0]) {
			return nil, false, nil
		}
		if with == nil {
			with = map[string]string{}
		}
		with[key] = values[0]
	}
	return with, true, nil
}
