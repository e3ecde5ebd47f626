package client

import (
	"context"
	"runtime"
	"slices"
	"sync"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// maxCallsInFlight is how many calls a sidecar runs for one connection.
const maxCallsInFlight = 10_000

// callStream is one stream of sidebus.v1.Calls. Callers queue their calls; one goroutine writes them, several in one
// request, and another one reads the answers.
type callStream struct {
	wake chan struct{} // has a value if there may be something to write

	mu        sync.Mutex
	queue     []*pendingCall // not written
	cancelled []uint64       // not written
	pending   map[uint64]*pendingCall
	last      uint64 // id of the last call that was written
	isServed  bool   // the sidecar has answered something
	isClosed  bool   // no more calls may be queued
}

func newCallStream() *callStream {
	return &callStream{wake: make(chan struct{}, 1), pending: map[uint64]*pendingCall{}}
}

// isOpen reports whether calls may be made.
func (s *callStream) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isClosed
}

// do makes a call and decodes its answer.
func (s *callStream) do(ctx context.Context, c *pendingCall, answer proto.Message) error {
	if err := s.enqueue(c); err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		s.cancel(c)
		return status.FromContextError(ctx.Err()).Err()
	}
	defer c.recycle()
	switch {
	case c.err != nil:
		return c.err
	case len(c.status) > 0:
		failure := &spb.Status{}
		if err := proto.Unmarshal(c.status, failure); err != nil {
			return status.Errorf(codes.Internal, "grpc: failed to unmarshal the status: %v", err)
		}
		if ended := ctx.Err(); ended != nil && failure.GetCode() == int32(codes.Canceled) {
			return status.FromContextError(ended).Err() // both are ready, and only the client knows which end it was
		}
		return status.ErrorProto(failure)
	}
	if err := proto.Unmarshal(c.response, answer); err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
	}
	return nil
}

func (s *callStream) enqueue(c *pendingCall) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return errNotRun
	}
	if len(s.queue)+len(s.pending) >= maxCallsInFlight {
		return errFull
	}
	s.queue = append(s.queue, c)
	s.wakeWriter()
	return nil
}

func (s *callStream) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// cancel ends a call without its answer, unless it has ended.
func (s *callStream) cancel(c *pendingCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.queue, c); at >= 0 {
		s.queue = slices.Delete(s.queue, at, at+1)
		return
	}
	if s.pending[c.id] == c {
		delete(s.pending, c.id)
		s.cancelled = append(s.cancelled, c.id)
		s.wakeWriter()
	}
}

// run opens the stream, and reads and writes until it ends. It returns how the stream has ended.
func (s *callStream) run(ctx context.Context, conn grpc.ClientConnInterface) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(
		ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, sidebusv1.Calls_Multiplex_FullMethodName,
		grpc.ForceCodecV2(rawCodec{}),
	)
	if err != nil {
		s.end(err, err)
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.write(ctx, stream)
	}()
	err = s.read(stream)
	switch code := status.Code(err); {
	case code == codes.Unimplemented && !s.isServed:
		err = errMissing
		s.end(err, err)
	case code == codes.Unauthenticated && !s.isServed: // refused before a call was read
		s.end(err, err)
	default:
		s.end(errNotRun, lost(err))
	}
	cancel()
	<-written
	return err
}

// lost returns the failure of a call that was written to a stream that has ended. The call may have been run, whatever
// the reason of the stream is: THROTTLED, for example, would claim that it was not.
func lost(err error) error {
	if status.Code(err) == codes.Canceled { // the client was closed
		return err
	}
	return status.Errorf(codes.Unavailable, "the stream ended before the call was answered: %s", status.Convert(err).Message())
}

// write writes what is queued until ctx ends.
func (s *callStream) write(ctx context.Context, stream grpc.ClientStream) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for request := s.next(); len(request) > 0; request = s.next() {
			if stream.SendMsg(request) != nil {
				return // read returns the reason
			}
		}
	}
}

// next returns the next request, empty if nothing is queued. Its calls are pending from now on.
func (s *callStream) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gather()
	cancelled := s.cancelled[:min(len(s.cancelled), maxCancelledTogether)]
	size, n := len(cancelled)*maxCancelledSize, 0
	for n < len(s.queue) && size+len(s.queue[n].encoded)+maxCallOverhead <= maxStreamRequest {
		size += len(s.queue[n].encoded) + maxCallOverhead
		n++
	}
	if size == 0 {
		return nil
	}
	request := make([]byte, 0, size)
	for _, c := range s.queue[:n] {
		s.last++
		c.id = s.last
		s.pending[c.id] = c
		request = appendNumbered(request, c.id, c.encoded)
	}
	s.queue = slices.Delete(s.queue, 0, n)
	for _, id := range cancelled {
		request = appendCancelled(request, id)
	}
	if s.cancelled = s.cancelled[len(cancelled):]; len(s.cancelled) == 0 {
		s.cancelled = nil
	}
	return request
}

// yields is how often in turn a request lets other goroutines run without a further call, before it is written. The
// first time, those that will call may still be behind others.
const yields = 2

// gather lets other goroutines run that are ready to, until no more of them queue calls, so that these share a request.
// A lone caller does not wait. The mutex is locked.
func (s *callStream) gather() {
	for last, inVain := 0, 0; inVain < yields && len(s.queue) > 0 && len(s.queue)+len(s.pending) > 1; {
		if inVain++; len(s.queue) > last {
			last, inVain = len(s.queue), 0
		}
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
}

// read passes answers to their calls until the stream ends.
func (s *callStream) read(stream grpc.ClientStream) error {
	for {
		var response []byte
		if err := stream.RecvMsg(&response); err != nil {
			return err
		}
		s.mu.Lock()
		s.isServed = true
		err := decodeResponse(response, s.answered, s.closing)
		s.mu.Unlock()
		if err != nil {
			return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err)
		}
	}
}

// answered passes a part of an answer to its call. An answer to a call that was cancelled is ignored. The mutex is
// locked.
func (s *callStream) answered(a answerPart) {
	c := s.pending[a.id]
	if c == nil {
		return
	}
	c.status = a.status
	if c.response == nil {
		c.response = slices.Clip(a.response) // what follows it is another answer
	} else {
		c.response = append(c.response, a.response...)
	}
	if !a.more {
		delete(s.pending, a.id)
		c.done <- struct{}{}
	}
}

// closing ends calls that the sidecar has not run, also those that would be written from now on. The mutex is locked.
func (s *callStream) closing(last uint64) {
	for id, c := range s.pending {
		if id > last {
			s.fail(c, errNotRun)
		}
	}
	s.close(errNotRun)
}

// end ends the stream: calls that were not written fail for one reason, the others for another one.
func (s *callStream) end(unwritten, written error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pending {
		s.fail(c, written)
	}
	s.close(unwritten)
}

// close lets no further call begin, and ends those that were not written. The mutex is locked.
func (s *callStream) close(unwritten error) {
	s.isClosed = true
	for _, c := range s.queue {
		s.fail(c, unwritten)
	}
	s.queue = nil
}

func (s *callStream) fail(c *pendingCall, err error) {
	delete(s.pending, c.id)
	c.err = err
	c.done <- struct{}{}
}
