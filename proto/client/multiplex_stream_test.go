package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Calls that are queued when the sidecar closes the stream were not run, and are not written any more. Cancellations are.
func TestCallsBehindClosing(t *testing.T) {
	t.Parallel()
	s := newCallStream()
	written, late := newPendingCall(), newPendingCall()
	mustQueue(t, s, written)
	if len(s.next()) == 0 {
		t.Fatal("nothing was written")
	}
	mustQueue(t, s, late)
	s.closing(1)
	s.cancel(written)
	request := &sidebusv1.MultiplexRequest{}
	if err := proto.Unmarshal(s.next(), request); err != nil || len(request.GetCalls()) != 0 || len(request.GetCancelled()) != 1 {
		t.Errorf("after closing: wrote %v, %v", request, err)
	}
	s.end(errNotRun, errMissing)
	if <-late.done; !errors.Is(late.err, errNotRun) {
		t.Errorf("a call that was not written: got %v", late.err)
	}
	if s.enqueue(newPendingCall()) == nil {
		t.Error("a call after closing was accepted")
	}
}

// The sidecar says of each call that its client does not await that it was cancelled. If that comes at the same time as
// the end of the context, the client says which end it was.
func TestCallWhoseTimeEndsWithItsAnswer(t *testing.T) {
	t.Parallel()
	cancelled, err := proto.Marshal(status.New(codes.Canceled, "the client disconnected").Proto())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for range 50 { // which of the two is seen first is random
		s, c := newCallStream(), newPendingCall()
		c.status = cancelled
		c.done <- struct{}{}
		if err := s.do(ctx, c, &sidebusv1.SendResponse{}); status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("got %v", err)
		}
	}
}

// However many calls are cancelled at once, no request is larger than the sidecar accepts, and all of them get there.
func TestManyCancelledAtOnce(t *testing.T) {
	t.Parallel()
	const many = 5000
	s := newCallStream()
	var calls []*pendingCall
	for range many {
		calls = append(calls, newPendingCall())
		mustQueue(t, s, calls[len(calls)-1])
	}
	s.last = 1 << 62 // long ids
	for len(s.next()) > 0 {
	}
	for _, c := range calls {
		s.cancel(c)
	}
	large := newPendingCall()
	large.encoded = protowire.AppendTag(large.encoded[:0], fieldCallRequest, protowire.BytesType)
	large.encoded = protowire.AppendBytes(large.encoded, make([]byte, maxCallRequest-4)) // its tag and length are the rest
	mustQueue(t, s, large)
	cancelled, sent := map[uint64]bool{}, 0
	for data := s.next(); len(data) > 0; data = s.next() {
		request := &sidebusv1.MultiplexRequest{}
		if err := proto.Unmarshal(data, request); err != nil || len(data) > maxStreamRequest {
			t.Errorf("a request of %d bytes: %v", len(data), err)
		}
		sent += len(request.GetCalls())
		for _, id := range request.GetCancelled() {
			cancelled[id] = true
		}
	}
	if sent != 1 || len(cancelled) != many {
		t.Errorf("wrote %d calls and %d cancellations", sent, len(cancelled))
	}
}

func mustQueue(t *testing.T, s *callStream, c *pendingCall) {
	t.Helper()
	if err := s.enqueue(c); err != nil {
		t.Fatal(err)
	}
}
