package grpcapi

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Bounds of what a Publish stream reads ahead while a send is under way; the rest waits in the connection.
const (
	maxPublishAhead      = 256
	maxPublishAheadBytes = 4 << 20
	maxPublishTogether   = 256 // requests of one send
)

// publication is one request of a Publish stream.
type publication struct {
	id       string
	target   string
	messages []*semantics.Message
	ack      sidebusv1.PublishRequest_Ack
	err      error // why it cannot be sent
	bytes    int
}

// Publish sends what comes on the stream; see semantics.Broker.SendEach. Whatever has come while a send was under way leaves
// with the next one, so that one stream is fast without any wait, and in its order (SEND-3).
func (s *Messages) Publish(stream grpc.BidiStreamingServer[sidebusv1.PublishRequest, sidebusv1.PublishResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	ahead := newAhead(maxPublishAhead, maxPublishAheadBytes)
	ended := make(chan error, 1)
	go func() { ended <- s.readPublications(ctx, stream, ahead) }()
	for {
		batch := ahead.take(maxPublishTogether, s.stopping)
		if batch == nil {
			break
		}
		if err := s.publish(ctx, stream, batch); err != nil {
			return err
		}
	}
	select {
	case err := <-ended:
		return err
	case <-s.stopping:
		return stopped()
	}
}

// stopped is how a stream ends that the client would go on with while the sidecar stops.
func stopped() error {
	return semantics.Errorf(semantics.StoreUnavailable, "this sidecar stops; open the stream again on another one").
		With(semantics.DetailCause, "draining")
}

// readPublications reads until the client closes its side, which is no error, or the stream breaks.
func (s *Messages) readPublications(ctx context.Context, stream grpc.BidiStreamingServer[sidebusv1.PublishRequest, sidebusv1.PublishResponse], ahead *ahead) error {
	defer ahead.close()
	target := ""
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p := publication{id: request.GetRequestId(), ack: request.GetAck(), bytes: proto.Size(request)}
		if request.GetTarget() != "" {
			target = request.GetTarget()
		}
		p.err = s.readPublication(request, target, &p)
		if !ahead.put(ctx, p) {
			return ctx.Err()
		}
	}
}

func (s *Messages) readPublication(request *sidebusv1.PublishRequest, target string, p *publication) error {
	err := refuseUnknown("request", request)
	if err == nil {
		err = checkRequestID(p.id)
	}
	if err == nil && p.ack != sidebusv1.PublishRequest_STORED && p.ack != sidebusv1.PublishRequest_NONE {
		err = fieldError("ack", "must be STORED or NONE")
	}
	if err == nil {
		p.target, err = queueName("target", target)
	}
	if err == nil {
		p.messages, err = s.messagesOf(request.GetMessages())
	}
	return err
}

// publish sends a batch, those for one target together, and answers it.
func (s *Messages) publish(ctx context.Context, stream grpc.BidiStreamingServer[sidebusv1.PublishRequest, sidebusv1.PublishResponse], batch []publication) error {
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].err == nil && batch[0].err == nil && batch[n].target == batch[0].target {
			n++
		}
		some := batch[:n]
		batch = batch[n:]
		results, errs := [][]semantics.SendResult{nil}, []error{some[0].err}
		if some[0].err == nil {
			calls := make([][]*semantics.Message, n)
			for i, p := range some {
				calls[i] = p.messages
			}
			// A send that has begun is seen through, so that its outcome is known.
			results, errs = s.broker.SendEach(context.WithoutCancel(ctx), some[0].target, calls)
		}
		for i, p := range some {
			response := &sidebusv1.PublishResponse{RequestId: p.id}
			switch {
			case errs[i] != nil:
				response.Outcome = &sidebusv1.PublishResponse_Failure{Failure: failureFrom(errs[i])}
			case p.ack == sidebusv1.PublishRequest_NONE:
				s.metrics.Sent(results[i])
				continue
			default:
				s.metrics.Sent(results[i])
				response.Outcome = &sidebusv1.PublishResponse_Sent{Sent: sentFrom(results[i])}
			}
			if err := stream.Send(response); err != nil {
				return err
			}
		}
	}
	return nil
}
