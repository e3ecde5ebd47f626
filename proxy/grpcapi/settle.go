package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// Complete removes messages; see semantics.Broker.Complete.
func (s *Messages) Complete(ctx context.Context, request *sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, obs.Complete, s.broker.Complete)
}

// Abandon gives messages back; see semantics.Broker.Abandon.
func (s *Messages) Abandon(ctx context.Context, request *sidebusv1.AbandonRequest) (*sidebusv1.SettleResponse, error) {
	properties, err := propertiesOf(request.GetProperties())
	if err != nil {
		return nil, err
	}
	options := semantics.AbandonOptions{Properties: properties}
	if request.GetDelay() != nil {
		delay, err := duration("delay", request.GetDelay())
		if err != nil {
			return nil, err
		}
		options.Delay = &delay
	}
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.Abandon(ctx, source, tokens, options)
	}
	return s.settle(ctx, request, obs.Abandon, verb)
}

// Defer sets messages aside; see semantics.Broker.Defer.
func (s *Messages) Defer(ctx context.Context, request *sidebusv1.DeferRequest) (*sidebusv1.SettleResponse, error) {
	properties, err := propertiesOf(request.GetProperties())
	if err != nil {
		return nil, err
	}
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.Defer(ctx, source, tokens, properties)
	}
	return s.settle(ctx, request, obs.Defer, verb)
}

// Release gives messages back uncounted; see semantics.Broker.Release.
func (s *Messages) Release(ctx context.Context, request *sidebusv1.ReleaseRequest) (*sidebusv1.SettleResponse, error) {
	return s.settle(ctx, request, obs.Release, s.broker.Release)
}

// DeadLetter moves messages to the dead-letter queue; see semantics.Broker.DeadLetter.
func (s *Messages) DeadLetter(ctx context.Context, request *sidebusv1.DeadLetterRequest) (*sidebusv1.SettleResponse, error) {
	properties, err := propertiesOf(request.GetProperties())
	if err != nil {
		return nil, err
	}
	options := semantics.DeadLetterOptions{
		Reason: request.Reason, Description: request.Description, Properties: properties, //nolint:protogetter // nil and empty differ (SETTLE-6)
	}
	verb := func(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.broker.DeadLetter(ctx, source, tokens, options)
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

// Reactivate makes deferred messages available; see semantics.Broker.Reactivate.
func (s *Messages) Reactivate(ctx context.Context, request *sidebusv1.ReactivateRequest) (*sidebusv1.ReactivateResponse, error) {
	source, err := sourceOf(request, request.GetSource(), request.GetSubQueue())
	if err != nil {
		return nil, err
	}
	if err := s.broker.Reactivate(ctx, source, request.GetSequenceNumbers()); err != nil {
		return nil, err
	}
	return &sidebusv1.ReactivateResponse{}, nil
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
