package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/handover"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// Messages serves sidebus.v1.Messages. It is safe for concurrent use.
type Messages struct {
	sidebusv1.UnimplementedMessagesServer

	broker         *semantics.Broker
	metrics        *obs.Metrics
	maxMessageSize int64
}

// NewMessages makes a Messages over broker. A sent message may count for at most maxMessageSize bytes, which is less over
// HTTP than over gRPC (MSG-21).
func NewMessages(broker *semantics.Broker, metrics *obs.Metrics, maxMessageSize int64) *Messages {
	return &Messages{broker: broker, metrics: metrics, maxMessageSize: maxMessageSize}
}

// Send stores messages; see semantics.Broker.Send.
func (s *Messages) Send(ctx context.Context, request *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	target, err := queueName("target", request.GetTarget())
	if err != nil {
		return nil, err
	}
	messages, err := s.messagesOf(request.GetMessages())
	if err != nil {
		return nil, err
	}
	results, err := s.broker.Send(ctx, target, messages)
	if err != nil {
		return nil, err
	}
	s.metrics.MessagesSent.Add(float64(len(results)))
	all := make([]sidebusv1.SendResponse_Result, len(results))
	response := &sidebusv1.SendResponse{Results: make([]*sidebusv1.SendResponse_Result, len(results))}
	for i, r := range results {
		all[i].SequenceNumber, all[i].MessageId = r.SequenceNumber, r.MessageID
		response.Results[i] = &all[i]
	}
	return response, nil
}

// Receive takes messages; see semantics.Broker.Receive. The wire must have opened a Slot in ctx and end it.
func (s *Messages) Receive(ctx context.Context, request *sidebusv1.ReceiveRequest) (*sidebusv1.ReceiveResponse, error) {
	source, err := sourceOf(request, request.GetSource(), request.GetSubQueue())
	if err != nil {
		return nil, err
	}
	options := semantics.ReceiveOptions{MaxMessages: 1, MaxWait: semantics.DefaultMaxWait}
	if request.MaxMessages != nil {
		options.MaxMessages = int(request.GetMaxMessages())
	}
	if request.GetMaxWait() != nil {
		if options.MaxWait, err = duration("maxWait", request.GetMaxWait()); err != nil {
			return nil, err
		}
	}
	switch request.GetMode() {
	case sidebusv1.ReceiveRequest_PEEK_LOCK:
	case sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE:
		options.Mode = semantics.ReceiveAndDelete
	default:
		return nil, fieldError("mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	delivery, err := s.broker.Receive(ctx, source, options)
	if err != nil {
		return nil, err
	}
	handover.Put(ctx, delivery, options.Mode)
	if err := ctx.Err(); err != nil {
		return nil, err // the client went away while the messages were on their way
	}
	s.metrics.MessagesReceived.Add(float64(len(delivery.Messages)))
	return &sidebusv1.ReceiveResponse{Messages: receivedFrom(delivery.Messages, false)}, nil
}

// Peek looks at messages; see semantics.Broker.Peek.
func (s *Messages) Peek(ctx context.Context, request *sidebusv1.PeekRequest) (*sidebusv1.PeekResponse, error) {
	source, err := sourceOf(request, request.GetSource(), request.GetSubQueue())
	if err != nil {
		return nil, err
	}
	limit := 1
	if request.MaxMessages != nil {
		limit = int(request.GetMaxMessages())
	}
	messages, err := s.broker.Peek(ctx, source, request.GetFromSequenceNumber(), limit)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.PeekResponse{Messages: receivedFrom(messages, true)}, nil
}

// Complete removes messages; see semantics.Broker.Complete.
func (s *Messages) Complete(ctx context.Context, request *sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, obs.Complete, s.broker.Complete)
}

// Abandon gives messages back; see semantics.Broker.Abandon.
func (s *Messages) Abandon(ctx context.Context, request *sidebusv1.AbandonRequest) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, obs.Abandon, s.broker.Abandon)
}

// Release gives messages back uncounted; see semantics.Broker.Release.
func (s *Messages) Release(ctx context.Context, request *sidebusv1.ReleaseRequest) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, obs.Release, s.broker.Release)
}

// DeadLetter moves messages to the dead-letter queue; see semantics.Broker.DeadLetter.
func (s *Messages) DeadLetter(ctx context.Context, request *sidebusv1.DeadLetterRequest) (*sidebusv1.SettleResponse, error) {
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.DeadLetter(ctx, source, tokens, request.GetReason(), request.GetDescription())
	}
	return s.settle(ctx, request, obs.DeadLetter, verb)
}

// RenewLocks extends locks; see semantics.Broker.RenewLocks.
func (s *Messages) RenewLocks(ctx context.Context, request *sidebusv1.RenewLocksRequest) (*sidebusv1.RenewLocksResponse, error) {
	source, tokens, err := locksOf(request)
	if err != nil {
		return nil, err
	}
	renewals, err := s.broker.RenewLocks(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.RenewLocksResponse{Results: make([]*sidebusv1.RenewLocksResponse_Result, len(renewals))}
	for i, r := range renewals {
		response.Results[i] = &sidebusv1.RenewLocksResponse_Result{
			LockToken: request.GetLockTokens()[i], Reason: present((*string)(&r.Code)), ExpiredInHand: r.ExpiredInHand,
		}
		if r.Code == "" {
			response.Results[i].LockedUntil = timestamp(r.LockedUntil)
		} else {
			s.metrics.LocksLost.WithLabelValues(obs.Renew).Inc()
		}
	}
	return response, nil
}

func (s *Messages) settle(ctx context.Context, request lockRequest, name string,
	verb func(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error),
) (*sidebusv1.SettleResponse, error) {
	source, tokens, err := locksOf(request)
	if err != nil {
		return nil, err
	}
	codes, err := verb(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	s.metrics.Settled(name, codes)
	all := make([]sidebusv1.SettleResponse_Result, len(codes))
	response := &sidebusv1.SettleResponse{Results: make([]*sidebusv1.SettleResponse_Result, len(codes))}
	for i := range codes {
		all[i].LockToken, all[i].Reason = request.GetLockTokens()[i], present((*string)(&codes[i]))
		response.Results[i] = &all[i]
	}
	return response, nil
}
