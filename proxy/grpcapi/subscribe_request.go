package grpcapi

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// carryOut runs one request that has begun, and answers it if it failed, or has an id and a response. If the client is
// gone, the answer is dropped.
func (c *subscriber) carryOut(request *sidebusv1.SubscribeRequest) {
	defer c.done()
	response, err := c.outcomeOf(c.stream.Context(), request)
	if err != nil {
		response = &sidebusv1.SubscribeResponse{
			Response: &sidebusv1.SubscribeResponse_Failure{Failure: failureFrom(err)},
		}
	} else if response == nil || request.GetRequestId() == "" {
		return
	}
	response.RequestId = request.GetRequestId()
	_ = c.send(response)
}

// checkRequest checks the fields that all requests have in common.
func checkRequest(request *sidebusv1.SubscribeRequest) error {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return err
	}
	if err := semantics.CheckID("requestId", request.GetRequestId()); err != nil {
		return err
	}
	asked, field := what(request)
	if asked == nil {
		return semantics.InvalidField("request", "must ask for something")
	}
	return wire.RefuseUnknown(field, asked)
}

// what returns the operation of a request and the name of its field.
func what(request *sidebusv1.SubscribeRequest) (asked proto.Message, field string) {
	m := request.ProtoReflect()
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.ContainingOneof() == nil {
			return true
		}
		asked, field = v.Message().Interface(), fd.JSONName()
		return false
	})
	return asked, field
}

func (c *subscriber) outcomeOf(
	ctx context.Context, request *sidebusv1.SubscribeRequest,
) (*sidebusv1.SubscribeResponse, error) {
	if err := checkRequest(request); err != nil {
		return nil, err
	}
	switch r := request.GetRequest().(type) {
	case *sidebusv1.SubscribeRequest_Credits:
		return nil, c.sub.SetCredits(int(r.Credits.GetCredits()))
	case *sidebusv1.SubscribeRequest_Settle:
		codes, err := c.settle(ctx, r.Settle)
		if err != nil || request.GetRequestId() == "" {
			return nil, err
		}
		settled := settledFrom(r.Settle.GetLockTokens(), codes)
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Settled{Settled: settled}}, nil
	case *sidebusv1.SubscribeRequest_RenewLocks:
		renewed, err := c.renewLocks(ctx, r.RenewLocks.GetLockTokens())
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Renewed{Renewed: renewed}}, err
	case *sidebusv1.SubscribeRequest_RenewSession:
		return c.renewSession(ctx, r.RenewSession)
	case *sidebusv1.SubscribeRequest_CloseSession:
		session, err := c.session(r.CloseSession)
		if err != nil {
			return nil, err
		}
		return nil, c.sub.CloseSession(session.SessionLock)
	case *sidebusv1.SubscribeRequest_GetState:
		return c.getState(ctx, r.GetState)
	case *sidebusv1.SubscribeRequest_SetState:
		return c.setState(ctx, r.SetState)
	default:
		return nil, semantics.InvalidField("open", "was sent before; open another stream")
	}
}

func (c *subscriber) settle(ctx context.Context, request *sidebusv1.SubscribeSettle) ([]semantics.Code, error) {
	name, verb, rest, err := c.messages.settlementOf(request)
	if err != nil {
		return nil, err
	}
	if rest.GetSource() != "" || rest.GetSubQueue() != 0 || len(rest.GetLockTokens()) > 0 ||
		rest.GetSessionLockToken() != "" {
		return nil, semantics.InvalidField(
			"verb",
			"must have neither source nor tokens: the stream knows the source, and lockTokens stand in settle itself",
		)
	}
	if err := wire.RefuseUnknown("verb", rest); err != nil {
		return nil, err
	}
	tokens, err := tokensOf(request.GetLockTokens())
	if err != nil {
		return nil, err
	}
	ctx = c.messages.metrics.Traces.Begin(ctx)
	var codes []semantics.Code
	if name == obs.Complete {
		codes, err = c.sub.Complete(ctx, tokens)
	} else {
		codes, err = c.sub.Settle(ctx, tokens, verb)
	}
	if err != nil {
		return nil, err
	}
	settled := obs.Settlement{Source: c.source, Verb: name, Tokens: tokens, Reason: reasonIn(rest)}
	c.messages.metrics.Settled(ctx, settled, codes)
	return codes, nil
}

// settlementOf translates the verb of a settlement. It also returns the verb's name in metrics and the rest of the
// request.
func (s *Messages) settlementOf(
	request *sidebusv1.SubscribeSettle,
) (name string, verb semantics.Settlement, rest interface {
	lockRequest
	GetSessionLockToken() string
}, err error,
) {
	switch v := request.GetVerb().(type) {
	case *sidebusv1.SubscribeSettle_Complete:
		return obs.Complete, s.broker.Complete, v.Complete, nil
	case *sidebusv1.SubscribeSettle_Release:
		return obs.Release, s.broker.Release, v.Release, nil
	case *sidebusv1.SubscribeSettle_Abandon:
		verb, err := s.abandonVerb(v.Abandon)
		return obs.Abandon, verb, v.Abandon, err
	case *sidebusv1.SubscribeSettle_Defer:
		verb, err := s.deferVerb(v.Defer)
		return obs.Defer, verb, v.Defer, err
	case *sidebusv1.SubscribeSettle_DeadLetter:
		verb, err := s.deadLetterVerb(v.DeadLetter)
		return obs.DeadLetter, verb, v.DeadLetter, err
	default:
		return "", nil, nil, semantics.InvalidField("verb", "must be complete, abandon, deadLetter, defer or release")
	}
}

func (c *subscriber) renewLocks(ctx context.Context, texts []string) (*sidebusv1.RenewLocksResponse, error) {
	tokens, err := tokensOf(texts)
	if err != nil {
		return nil, err
	}
	return c.messages.renewLocks(ctx, c.source, texts, tokens)
}

// session translates the token of a session.
func (c *subscriber) session(request interface{ GetSessionLockToken() string }) (semantics.Source, error) {
	lock, err := sessionLock("sessionLockToken", request.GetSessionLockToken())
	return c.sub.Source(lock), err
}

func (c *subscriber) renewSession(
	ctx context.Context, request *sidebusv1.SubscribeSession,
) (*sidebusv1.SubscribeResponse, error) {
	session, err := c.session(request)
	if err != nil {
		return nil, err
	}
	until, err := c.messages.broker.RenewSessionLock(ctx, session)
	return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionRenewed{
		SessionRenewed: &sidebusv1.SessionsRenewLockResponse{LockedUntil: wire.TimestampFrom(until)},
	}}, err
}

func (c *subscriber) getState(
	ctx context.Context, request *sidebusv1.SubscribeSession,
) (*sidebusv1.SubscribeResponse, error) {
	session, err := c.session(request)
	if err != nil {
		return nil, err
	}
	state, err := c.messages.broker.SessionState(ctx, session)
	return stateResponse(state), err
}

func (c *subscriber) setState(
	ctx context.Context, request *sidebusv1.SubscribeSetState,
) (*sidebusv1.SubscribeResponse, error) {
	session, err := c.session(request)
	if err != nil {
		return nil, err
	}
	version, err := c.messages.broker.SetSessionState(
		ctx, session, request.State, request.ExpectedVersion,
	) //nolint:protogetter // nil and empty differ (SESS-33)
	return stateResponse(semantics.SessionState{Version: version}), err
}

func stateResponse(state semantics.SessionState) *sidebusv1.SubscribeResponse {
	return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_State{
		State: &sidebusv1.SessionsGetStateResponse{State: state.Data, Version: state.Version},
	}}
}
