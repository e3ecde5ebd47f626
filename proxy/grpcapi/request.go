package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/reply"
)

// Request sends a message, waits for the reply and leaves the reply to the wire; see broker.Broker.Request.
func (s *Messages) Request(ctx context.Context, request *sidebusv1.RequestRequest) (*sidebusv1.RequestResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	target, err := targetOf("target", request.GetTarget())
	if err != nil {
		return nil, err
	}
	replyTo, err := pathOf(semantics.QueueKind, "replyTo", request.GetReplyTo())
	if err != nil {
		return nil, err
	}
	if request.GetMessage() == nil {
		return nil, semantics.InvalidField("message", "is required")
	}
	var message semantics.Message
	if err := s.messageOf(request.GetMessage(), &message); err != nil {
		return nil, err
	}
	timeout := reply.DefaultRequestTimeout
	if request.GetTimeout() != nil {
		if timeout, err = wire.DurationOf("timeout", request.GetTimeout()); err != nil {
			return nil, err
		}
	}
	asking, sending := s.metrics.Traces.Request(ctx, target, &message)
	sent, delivery, err := s.broker.Request(asking, target, replyTo, &message, timeout)
	sending.End(err)
	s.metrics.Sent(target, []*semantics.Message{&message}, sent)
	response, err := s.deliver(ctx, delivery, semantics.ReceiveAndDelete, err)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.RequestResponse{Message: response.GetMessages()[0]}, nil
}
