package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// EnsureSubscription creates a subscription with its first rules if its name is free. It compares the rules of an
// existing subscription too.
func (a *Admin) EnsureSubscription(
	ctx context.Context, request *sidebusv1.EnsureSubscriptionRequest,
) (*sidebusv1.EnsureSubscriptionResponse, error) {
	rules, err := wire.RulesOf(request.GetSubscription().GetRules())
	if err != nil {
		return nil, err
	}
	ensured, err := a.ensure(ctx, semantics.SubscriptionKind, request, request.GetSubscription(), rules...)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.EnsureSubscriptionResponse{
		Created: ensured.Created, Resource: wire.SubscriptionFrom(ensured.Entity),
		Differences: differencesFrom(ensured.Differences),
	}
	if ensured.Created || len(rules) == 0 {
		return response, nil
	}
	differences, err := a.compareRules(ctx, ensured.Entity.Name, rules)
	if err != nil {
		return nil, err
	}
	response.Differences = append(response.Differences, differences...)
	return response, nil
}

// CreateSubscription creates a subscription with its first rules.
func (a *Admin) CreateSubscription(
	ctx context.Context, request *sidebusv1.CreateSubscriptionRequest,
) (*sidebusv1.Subscription, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	path, err := subscriptionPath(request.GetTopic(), request.GetSubscription().GetName())
	if err != nil {
		return nil, err
	}
	rules, err := wire.RulesOf(request.GetSubscription().GetRules())
	if err != nil {
		return nil, err
	}
	subscription, err := a.create(ctx, semantics.SubscriptionKind, path, request.GetSubscription(), rules...)
	if err != nil {
		return nil, err
	}
	return wire.SubscriptionFrom(subscription), nil
}

// GetSubscription reads a subscription.
func (a *Admin) GetSubscription(
	ctx context.Context, request *sidebusv1.GetSubscriptionRequest,
) (*sidebusv1.Subscription, error) {
	subscription, err := a.get(ctx, semantics.SubscriptionKind, request)
	if err != nil {
		return nil, err
	}
	return wire.SubscriptionFrom(subscription), nil
}

// ListSubscriptions returns one page of a topic's subscriptions.
func (a *Admin) ListSubscriptions(
	ctx context.Context, request *sidebusv1.ListSubscriptionsRequest,
) (*sidebusv1.ListSubscriptionsResponse, error) {
	topic, err := pathOf(semantics.TopicKind, "topic", request.GetTopic())
	if err != nil {
		return nil, err
	}
	subscriptions, next, err := a.list(ctx, semantics.SubscriptionKind, topic, request)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.ListSubscriptionsResponse{
		Subscriptions: make([]*sidebusv1.Subscription, len(subscriptions)), NextPageToken: next,
	}
	for i, subscription := range subscriptions {
		response.Subscriptions[i] = wire.SubscriptionFrom(subscription)
	}
	return response, nil
}

// UpdateSubscription changes options of a subscription. It does not change its rules.
func (a *Admin) UpdateSubscription(
	ctx context.Context, request *sidebusv1.UpdateSubscriptionRequest,
) (*sidebusv1.Subscription, error) {
	if len(request.GetSubscription().GetRules()) > 0 {
		return nil, semantics.InvalidField("rules", "cannot be updated; create and delete rules instead")
	}
	subscription, err := a.update(
		ctx, semantics.SubscriptionKind, request, request.GetSubscription(), request.GetUpdateMask(),
	)
	if err != nil {
		return nil, err
	}
	return wire.SubscriptionFrom(subscription), nil
}

// DeleteSubscription removes a subscription with its rules.
func (a *Admin) DeleteSubscription(
	ctx context.Context, request *sidebusv1.DeleteSubscriptionRequest,
) (*sidebusv1.DeleteSubscriptionResponse, error) {
	if err := a.remove(ctx, semantics.SubscriptionKind, request); err != nil {
		return nil, err
	}
	return &sidebusv1.DeleteSubscriptionResponse{}, nil
}

// GetSubscriptionRuntime returns the counts of a subscription.
func (a *Admin) GetSubscriptionRuntime(
	ctx context.Context, request *sidebusv1.GetSubscriptionRuntimeRequest,
) (*sidebusv1.QueueRuntime, error) {
	return a.countSource(ctx, semantics.SubscriptionKind, request)
}
