package grpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// deliversMessages are the methods that deliver messages or a session, and may wait for them. For each call of such a
// method the wire must open a Slot and end it (RECV-7).
var deliversMessages = map[string]bool{
	sidebusv1.Messages_Receive_FullMethodName:            true,
	sidebusv1.Messages_CompleteAndReceive_FullMethodName: true,
	sidebusv1.Messages_ReceiveDeferred_FullMethodName:    true,
	sidebusv1.Messages_ReceiveBySequence_FullMethodName:  true,
	sidebusv1.Messages_Request_FullMethodName:            true,
	sidebusv1.Sessions_Accept_FullMethodName:             true,
}

// Receive takes messages; see broker.Broker.Receive.
func (s *Messages) Receive(ctx context.Context, request *sidebusv1.ReceiveRequest) (*sidebusv1.ReceiveResponse, error) {
	source, err := s.sessionSourceOf(ctx, request, request.SessionLockToken, nil)
	if err != nil {
		return nil, err
	}
	options, err := receiveOptionsOf(request, request.MaxMessages)
	if err != nil {
		return nil, err
	}
	delivery, err := s.broker.Receive(ctx, source, options)
	return s.deliver(ctx, delivery, options.Mode, err)
}

// receiveOptionsOf translates how to receive. most is max_messages, nil if absent.
func receiveOptionsOf(request interface {
	GetMaxWait() *durationpb.Duration
	GetMode() sidebusv1.ReceiveRequest_Mode
}, most *int32,
) (options broker.ReceiveOptions, err error) {
	options = broker.ReceiveOptions{MaxMessages: 1, MaxWait: semantics.DefaultMaxWait}
	if most != nil {
		options.MaxMessages = int(*most)
	}
	if request.GetMaxWait() != nil {
		if options.MaxWait, err = wire.DurationOf("maxWait", request.GetMaxWait()); err != nil {
			return options, err
		}
	}
	options.Mode, err = modeOf(request.GetMode())
	return options, err
}

// CompleteAndReceive completes messages and takes the next ones; see broker.Broker.CompleteAndReceive.
func (s *Messages) CompleteAndReceive(
	ctx context.Context, request *sidebusv1.CompleteAndReceiveRequest,
) (*sidebusv1.CompleteAndReceiveResponse, error) {
	source, tokens, err := s.locksOf(ctx, request, request.SessionLockToken)
	if err != nil {
		return nil, err
	}
	options, err := receiveOptionsOf(request, request.MaxMessages)
	if err != nil {
		return nil, err
	}
	next, err := s.broker.CompleteAndReceive(ctx, source, tokens, options)
	if err != nil {
		return nil, err
	}
	s.metrics.Settled(ctx, obs.Settlement{Source: source, Verb: obs.Complete, Tokens: tokens}, next.Codes)
	answer := &sidebusv1.CompleteAndReceiveResponse{
		Results: settledFrom(request.GetLockTokens(), next.Codes).GetResults(),
	}
	if next.Failure != nil {
		answer.Failure = failureFrom(next.Failure)
		return answer, nil
	}
	received, err := s.deliver(ctx, next.Delivery, options.Mode, nil)
	if err != nil {
		return nil, err
	}
	answer.Messages = received.GetMessages()
	return answer, nil
}

// ReceiveDeferred takes deferred messages by number; see broker.Broker.ReceiveDeferred.
func (s *Messages) ReceiveDeferred(
	ctx context.Context, request *sidebusv1.ReceiveDeferredRequest,
) (*sidebusv1.ReceiveResponse, error) {
	return s.receiveByNumber(ctx, request, request.SessionLockToken, s.broker.ReceiveDeferred)
}

// ReceiveBySequence takes available messages by number; see broker.Broker.ReceiveBySequence.
func (s *Messages) ReceiveBySequence(
	ctx context.Context, request *sidebusv1.ReceiveBySequenceRequest,
) (*sidebusv1.ReceiveResponse, error) {
	return s.receiveByNumber(ctx, request, nil, s.broker.ReceiveBySequence)
}

func (s *Messages) receiveByNumber(ctx context.Context, request interface {
	numbersRequest
	GetMode() sidebusv1.ReceiveRequest_Mode
}, session *string, verb func(context.Context, semantics.Source, []int64, semantics.Mode) (*delivery.Delivery, error),
) (*sidebusv1.ReceiveResponse, error) {
	source, err := s.sessionSourceOf(ctx, request, session, nil)
	if err != nil {
		return nil, err
	}
	mode, err := modeOf(request.GetMode())
	if err != nil {
		return nil, err
	}
	delivery, err := verb(ctx, source, request.GetSequenceNumbers(), mode)
	return s.deliver(ctx, delivery, mode, err)
}

func modeOf(mode sidebusv1.ReceiveRequest_Mode) (semantics.Mode, error) {
	switch mode {
	case sidebusv1.ReceiveRequest_PEEK_LOCK:
		return semantics.PeekLock, nil
	case sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE:
		return semantics.ReceiveAndDelete, nil
	default:
		return 0, semantics.InvalidField("mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
}

// deliver answers a receive and leaves the Delivery to the wire, which ends it.
func (s *Messages) deliver(
	ctx context.Context, delivery *delivery.Delivery, mode semantics.Mode, err error,
) (*sidebusv1.ReceiveResponse, error) {
	if err != nil {
		return nil, err
	}
	response.SetDelivery(ctx, delivery, mode)
	if err := ctx.Err(); err != nil {
		return nil, err // the client went away before the messages reached it
	}
	s.metrics.Received(ctx, delivery.Source(), delivery.Messages)
	if s.over == OverGRPC {
		return &sidebusv1.ReceiveResponse{Messages: wire.EncodedFrom(delivery.Messages)}, nil
	}
	return &sidebusv1.ReceiveResponse{Messages: wire.ReceivedFrom(delivery.Messages, false)}, nil
}
