package grpcapi

import (
	"context"
	"strconv"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Messages serves sidebus.v1.Messages. It is safe for concurrent use.
type Messages struct {
	sidebusv1.UnimplementedMessagesServer
	sources

	metrics  *obs.Metrics
	over     Over
	stopping <-chan struct{}
}

// Over is how calls arrive.
type Over uint8

// How calls arrive.
const (
	OverGRPC Over = iota // encoded
	OverHTTP             // as objects of this process, with smaller messages (MSG-21)
)

// NewMessages returns a Messages over broker. Streams end when stopping is closed.
func NewMessages(broker *broker.Broker, metrics *obs.Metrics, over Over, stopping <-chan struct{}) *Messages {
	return &Messages{sources: sources{broker}, metrics: metrics, over: over, stopping: stopping}
}

// Send stores messages; see broker.Broker.Send.
func (s *Messages) Send(ctx context.Context, request *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
	return s.sendMessages(ctx, request, func() ([]*semantics.Message, error) {
		return s.messagesOf(request.GetMessages())
	})
}

// sendMessages is Send for messages that may have been decoded apart from the request.
func (s *Messages) sendMessages(
	ctx context.Context, request *sidebusv1.SendRequest, messagesOf func() ([]*semantics.Message, error),
) (*sidebusv1.SendResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	target, err := targetOf("target", request.GetTarget())
	if err != nil {
		return nil, err
	}
	messages, err := messagesOf()
	if err != nil {
		return nil, err
	}
	ctx, sending := s.metrics.Traces.Send(ctx, target, messages)
	results, repeated, err := s.sendOrRepeat(
		ctx, target, request.RequestId, messages,
	) //nolint:protogetter // nil and empty differ (IDEM-1)
	sending.End(err)
	if err != nil {
		return nil, err
	}
	if !repeated {
		s.metrics.Sent(target, messages, results)
	}
	response := sentFrom(results)
	response.Repeated = repeated
	return response, nil
}

// sendOrRepeat sends. If there is a request id, all calls with that id send only once (IDEM-1).
func (s *Messages) sendOrRepeat(
	ctx context.Context, target semantics.Target, requestID *string, messages []*semantics.Message,
) (results []semantics.SendResult, repeated bool, err error) {
	if requestID != nil {
		return s.broker.SendOnce(ctx, target, *requestID, messages)
	}
	results, err = s.broker.Send(ctx, target, messages)
	return results, false, err
}

func sentFrom(results []semantics.SendResult) *sidebusv1.SendResponse {
	all := make([]sidebusv1.SendResponse_Result, len(results))
	response := &sidebusv1.SendResponse{Results: make([]*sidebusv1.SendResponse_Result, len(results))}
	for i, r := range results {
		all[i].SequenceNumber, all[i].MessageId, all[i].Deduplicated = r.SequenceNumber, r.MessageID, r.Deduplicated
		response.Results[i] = &all[i]
	}
	return response
}

// CancelScheduled removes scheduled messages; see broker.Broker.CancelScheduled.
func (s *Messages) CancelScheduled(
	ctx context.Context, request *sidebusv1.CancelScheduledRequest,
) (*sidebusv1.CancelScheduledResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	target, err := targetOf("target", request.GetTarget())
	if err != nil {
		return nil, err
	}
	if _, _, err := s.topicOf(ctx, request.GetTarget(), nil); err != nil {
		return nil, err
	}
	cancelled, err := s.broker.CancelScheduled(ctx, target, request.GetSequenceNumbers(), request.GetMessageIds())
	if err != nil {
		return nil, err
	}
	s.metrics.Removed(target.Path, obs.Cancel, int64(cancelled))
	return &sidebusv1.CancelScheduledResponse{Cancelled: int64(cancelled)}, nil
}

// shown are the groups of messages in the order of sidebus.v1.PeekRequest.Include.
var shown = []semantics.Show{
	sidebusv1.PeekRequest_AVAILABLE: semantics.ShowAvailable,
	sidebusv1.PeekRequest_LOCKED:    semantics.ShowLocked,
	sidebusv1.PeekRequest_DEFERRED:  semantics.ShowDeferred,
	sidebusv1.PeekRequest_SCHEDULED: semantics.ShowScheduled,
}

// Peek looks at messages; see broker.Broker.Peek.
func (s *Messages) Peek(ctx context.Context, request *sidebusv1.PeekRequest) (*sidebusv1.PeekResponse, error) {
	source, err := sessionSourceOf(request, request.SessionLockToken, request.SessionId)
	if err != nil {
		return nil, err
	}
	limit := 1
	if request.MaxMessages != nil {
		limit = int(request.GetMaxMessages())
	}
	show := semantics.Show(0)
	for _, group := range request.GetInclude() {
		if group < 0 || int(group) >= len(shown) {
			return nil, semantics.InvalidField("include", "must have AVAILABLE, LOCKED, DEFERRED and SCHEDULED only")
		}
		show |= shown[group]
	}
	if _, _, err := s.topicOf(ctx, request.GetSource(), nil); err != nil {
		return nil, err
	}
	messages, err := s.broker.Peek(ctx, source, request.GetFromSequenceNumber(), limit, show)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.PeekResponse{Messages: wire.ReceivedFrom(messages, true)}, nil
}

// messagesOf translates the messages of a sender. An error carries the position of the invalid message.
func (s *Messages) messagesOf(sent []*sidebusv1.Message) ([]*semantics.Message, error) {
	all := make([]semantics.Message, len(sent))
	messages := make([]*semantics.Message, len(sent))
	for i, m := range sent {
		messages[i] = &all[i]
		if err := s.messageOf(m, &all[i]); err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return messages, nil
}

func (s *Messages) messageOf(from *sidebusv1.Message, to *semantics.Message) error {
	if err := wire.MessageOf(from, to); err != nil {
		return err
	}
	return checkSize(to, s.over)
}

func checkSize(m *semantics.Message, over Over) error {
	switch n := m.Size(); {
	case over == OverHTTP && n > semantics.MaxHTTPMessageSize:
		return semantics.HTTPMessageTooLarge(n)
	case n > semantics.MaxMessageSize:
		return semantics.SizeExceeded("message", n, semantics.MaxMessageSize)
	default:
		return nil
	}
}
