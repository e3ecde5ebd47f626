package grpcapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// Bounds of what a Publish stream reads ahead during a send; the rest waits in the connection.
const (
	maxPublishQueue      = 256
	maxPublishQueueBytes = 4 << 20
	maxPublishBatch      = 256 // requests of one send
)

type publishStream = grpc.BidiStreamingServer[sidebusv1.PublishRequest, sidebusv1.PublishResponse]

// publication is one request of a Publish stream.
type publication struct {
	id       string
	target   semantics.Target
	messages []*semantics.Message
	ack      sidebusv1.PublishRequest_Ack
	err      error // why it cannot be sent
	bytes    int
}

// Publish sends the messages of the stream; see broker.Broker.SendEach. Requests that arrive during a send are sent
// together by the next one, in order (SEND-3), so that one stream is fast without a delay. When the sidecar stops,
// requests that were read are sent and answered.
func (s *Messages) Publish(stream publishStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	ahead := newPublishQueue(maxPublishQueue, maxPublishQueueBytes)
	go func() {
		defer catch(ahead.close)
		ahead.close(s.readPublications(ctx, stream, ahead))
	}()
	go func() {
		select {
		case <-s.stopping:
			ahead.close(stopped())
		case <-ctx.Done():
		}
	}()
	for {
		batch, err := ahead.take(maxPublishBatch)
		if len(batch) == 0 {
			rethrow(err)
			return err
		}
		if err := s.publish(stream, batch); err != nil {
			return err
		}
	}
}

// readPublications reads until the client closes its side, which is not an error, or the queue accepts no more.
func (s *Messages) readPublications(ctx context.Context, stream publishStream, ahead *publishQueue) error {
	in, target := newPublishRequest(), ""
	for receive := receiver(stream, in); ; {
		err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if in.request.GetTarget() != "" {
			target = in.request.GetTarget()
		}
		in.request.Target = target
		next := publicationOf(ctx, in)
		in.release()
		if !ahead.put(ctx, next) {
			return ctx.Err()
		}
	}
}

func publicationOf(ctx context.Context, in *sending[*sidebusv1.PublishRequest]) publication {
	request := in.request
	p := publication{id: request.GetRequestId(), ack: request.GetAck(), bytes: in.bytes}
	p.err = access.Check(ctx, sidebusv1.Messages_Publish_FullMethodName, request)
	if p.err == nil {
		p.err = wire.RefuseUnknown("request", request)
	}
	if p.err == nil {
		p.err = semantics.CheckID("requestId", p.id)
	}
	if p.err == nil && p.ack != sidebusv1.PublishRequest_STORED && p.ack != sidebusv1.PublishRequest_NONE {
		p.err = semantics.InvalidField("ack", "must be STORED or NONE")
	}
	if p.err == nil {
		p.target, p.err = targetOf("target", request.GetTarget())
	}
	if p.err == nil {
		p.messages, p.err = in.checked()
	}
	return p
}

// publish sends a batch and answers it. Consecutive publications to one target share a send.
func (s *Messages) publish(stream publishStream, batch []publication) error {
	for len(batch) > 0 {
		if err := stream.Context().Err(); err != nil {
			return err // the client could not get the outcomes of the rest
		}
		n := batchLength(batch)
		results, errs := s.send(stream.Context(), batch[:n])
		admission.RequestHandled(stream.Context())
		for i, p := range batch[:n] {
			if err := acknowledge(stream, p, results[i], errs[i]); err != nil {
				return err
			}
		}
		batch = batch[n:]
	}
	return nil
}

// batchLength returns how many of the first publications can share one send.
func batchLength(batch []publication) int {
	n := 1
	for n < len(batch) && batch[0].err == nil && batch[n].err == nil && batch[n].target == batch[0].target {
		n++
	}
	return n
}

// send sends publications to one target, or returns the error of one that cannot be sent. The end of ctx does not
// cancel a send, so that its outcome is known.
func (s *Messages) send(ctx context.Context, some []publication) ([][]semantics.SendResult, []error) {
	if err := some[0].err; err != nil {
		return make([][]semantics.SendResult, 1), []error{err}
	}
	calls := make([][]*semantics.Message, len(some))
	for i, p := range some {
		calls[i] = p.messages
	}
	ctx, sending := s.metrics.Traces.SendEach(context.WithoutCancel(ctx), some[0].target, calls)
	results, errs := s.broker.SendEach(ctx, some[0].target, calls)
	sending.EndEach(errs)
	var sent []*semantics.Message
	var stored []semantics.SendResult
	for i, err := range errs {
		if err == nil {
			sent, stored = append(sent, calls[i]...), append(stored, results[i]...)
		}
	}
	if len(stored) > 0 {
		s.metrics.Sent(some[0].target, sent, stored)
	}
	return results, errs
}

// acknowledge answers one publication if it failed or requested an acknowledgement.
func acknowledge(stream publishStream, p publication, results []semantics.SendResult, err error) error {
	switch {
	case err != nil:
		failure := &sidebusv1.PublishResponse_Failure{Failure: failureFrom(err)}
		return stream.Send(&sidebusv1.PublishResponse{RequestId: p.id, Outcome: failure})
	case p.ack == sidebusv1.PublishRequest_NONE:
		return nil
	default:
		return stream.SendMsg(publishedFrom(p.id, results))
	}
}

// Numbers of fields of sidebus.v1.PublishResponse.
const (
	fieldRequestID protowire.Number = 1
	fieldSent      protowire.Number = 2
)

// publishedFrom encodes the response to a publication that was stored.
func publishedFrom(id string, results []semantics.SendResult) mem.Buffer {
	size := wire.SentSize(results)
	b := make([]byte, 0, size+len(id)+2*binary.MaxVarintLen32)
	if id != "" {
		b = protowire.AppendString(protowire.AppendTag(b, fieldRequestID, protowire.BytesType), id)
	}
	return mem.SliceBuffer(wire.AppendPart(b, fieldSent, size, func(b []byte) []byte {
		return wire.AppendSent(b, results)
	}))
}
