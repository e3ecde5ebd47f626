package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// settleVerb is a settlement with its options.
type settleVerb = semantics.Settlement

// Complete removes messages; see broker.Broker.Complete.
func (s *Messages) Complete(
	ctx context.Context, request *sidebusv1.CompleteRequest,
) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, request.SessionLockToken, obs.Complete, s.broker.Complete)
}

// Abandon makes messages available again; see broker.Broker.Abandon.
func (s *Messages) Abandon(ctx context.Context, request *sidebusv1.AbandonRequest) (*sidebusv1.SettleResponse, error) {
	verb, err := s.abandonVerb(request)
	if err != nil {
		return nil, err
	}
	return s.settle(ctx, request, request.SessionLockToken, obs.Abandon, verb)
}

func (s *Messages) abandonVerb(request *sidebusv1.AbandonRequest) (settleVerb, error) {
	options, err := abandonOptions(request)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.Abandon(ctx, source, tokens, options)
	}, nil
}

func abandonOptions(request *sidebusv1.AbandonRequest) (semantics.AbandonOptions, error) {
	properties, err := wire.PropertiesOf(request.GetProperties())
	if err != nil {
		return semantics.AbandonOptions{}, err
	}
	options := semantics.AbandonOptions{Properties: properties, SkipOrder: request.GetSkipOrder()}
	if request.GetDelay() != nil {
		delay, err := wire.DurationOf("delay", request.GetDelay())
		if err != nil {
			return semantics.AbandonOptions{}, err
		}
		options.Delay = &delay
	}
	return options, nil
}

// Defer defers messages; see broker.Broker.Defer.
func (s *Messages) Defer(ctx context.Context, request *sidebusv1.DeferRequest) (*sidebusv1.SettleResponse, error) {
	verb, err := s.deferVerb(request)
	if err != nil {
		return nil, err
	}
	return s.settle(ctx, request, request.SessionLockToken, obs.Defer, verb)
}

func (s *Messages) deferVerb(request *sidebusv1.DeferRequest) (settleVerb, error) {
	properties, err := wire.PropertiesOf(request.GetProperties())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.Defer(ctx, source, tokens, properties)
	}, nil
}

// Release makes messages available again without counting a delivery; see broker.Broker.Release.
func (s *Messages) Release(ctx context.Context, request *sidebusv1.ReleaseRequest) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, request.SessionLockToken, obs.Release, s.broker.Release)
}

// DeadLetter moves messages to the dead-letter queue; see broker.Broker.DeadLetter.
func (s *Messages) DeadLetter(
	ctx context.Context, request *sidebusv1.DeadLetterRequest,
) (*sidebusv1.SettleResponse, error) {
	verb, err := s.deadLetterVerb(request)
	if err != nil {
		return nil, err
	}
	return s.settle(ctx, request, request.SessionLockToken, obs.DeadLetter, verb)
}

func (s *Messages) deadLetterVerb(request *sidebusv1.DeadLetterRequest) (settleVerb, error) {
	properties, err := wire.PropertiesOf(request.GetProperties())
	if err != nil {
		return nil, err
	}
	options := broker.DeadLetterOptions{
		Reason: request.Reason, Description: request.Description, Properties: properties, //nolint:protogetter // nil and empty differ (SETTLE-6)
	}
	return func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.DeadLetter(ctx, source, tokens, options)
	}, nil
}

// RenewLocks extends locks; see broker.Broker.RenewLocks.
func (s *Messages) RenewLocks(
	ctx context.Context, request *sidebusv1.RenewLocksRequest,
) (*sidebusv1.RenewLocksResponse, error) {
	source, tokens, err := s.locksOf(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	return s.renewLocks(ctx, source, request.GetLockTokens(), tokens)
}

// renewLocks extends the locks with these tokens, which are texts.
func (s *Messages) renewLocks(
	ctx context.Context, source semantics.Source, texts []string, tokens []semantics.LockToken,
) (*sidebusv1.RenewLocksResponse, error) {
	renewals, err := s.broker.RenewLocks(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.RenewLocksResponse{Results: make([]*sidebusv1.RenewLocksResponse_Result, len(renewals))}
	for i, r := range renewals {
		response.Results[i] = &sidebusv1.RenewLocksResponse_Result{
			LockToken: texts[i], Reason: wire.Present((*string)(&r.Code)), ExpiredInHand: r.ExpiredInHand,
		}
		if r.Code == "" {
			response.Results[i].LockedUntil = wire.TimestampFrom(r.LockedUntil)
		} else {
			s.metrics.LockLost(source, obs.Renew)
		}
	}
	return response, nil
}

// Reactivate makes deferred messages available; see broker.Broker.Reactivate.
func (s *Messages) Reactivate(
	ctx context.Context, request *sidebusv1.ReactivateRequest,
) (*sidebusv1.ReactivateResponse, error) {
	source, err := s.sessionSourceOf(ctx, request, request.SessionLockToken, nil)
	if err != nil {
		return nil, err
	}
	if err := s.broker.Reactivate(ctx, source, request.GetSequenceNumbers()); err != nil {
		return nil, err
	}
	return &sidebusv1.ReactivateResponse{}, nil
}

// settle settles messages and answers. session is the token of a session's lock, nil for none.
func (s *Messages) settle(ctx context.Context, request lockRequest, session *string, name string,
	verb settleVerb,
) (*sidebusv1.SettleResponse, error) {
	source, tokens, err := s.locksOf(ctx, request, session)
	if err != nil {
		return nil, err
	}
	codes, err := verb(ctx, source, tokens)
	if err != nil {
		return nil, err
	}
	s.metrics.Settled(ctx, obs.Settlement{Source: source, Verb: name, Tokens: tokens, Reason: reasonIn(request)}, codes)
	return settledFrom(request.GetLockTokens(), codes), nil
}

// reasonIn returns the reason in a request to dead-letter, empty for other requests.
func reasonIn(request lockRequest) string {
	if r, ok := request.(*sidebusv1.DeadLetterRequest); ok {
		return r.GetReason()
	}
	return ""
}

func settledFrom(tokens []string, codes []semantics.Code) *sidebusv1.SettleResponse {
	all := make([]sidebusv1.SettleResponse_Result, len(codes))
	response := &sidebusv1.SettleResponse{Results: make([]*sidebusv1.SettleResponse_Result, len(codes))}
	for i := range codes {
		all[i].LockToken, all[i].Reason = tokens[i], wire.Present((*string)(&codes[i]))
		response.Results[i] = &all[i]
	}
	return response
}
