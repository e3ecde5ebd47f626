package client

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Ensured is the answer to an ensure.
type Ensured interface {
	proto.Message
	GetCreated() bool
	GetDifferences() []*sidebusv1.Difference
}

// Blank returns an empty description of an entity.
func Blank(resource string) Description {
	switch Kind(resource) {
	case semantics.TopicKind:
		return &sidebusv1.Topic{}
	case semantics.SubscriptionKind:
		return &sidebusv1.Subscription{}
	default:
		return &sidebusv1.Queue{}
	}
}

// Ensure creates the entity that d, made by Blank, describes, if there is none.
func Ensure(ctx context.Context, api sidebusv1.AdminClient, resource string, d Description) (Ensured, error) {
	switch d := d.(type) {
	case *sidebusv1.Topic:
		return api.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{Name: resource, Topic: d})
	case *sidebusv1.Subscription:
		return api.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: resource, Subscription: d})
	default:
		return api.EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: resource, Queue: d.(*sidebusv1.Queue)})
	}
}

// Update changes the options of the entity that paths names.
func Update(
	ctx context.Context, api sidebusv1.AdminClient, resource string, d Description, paths []string,
) (Description, error) {
	mask := &fieldmaskpb.FieldMask{Paths: paths}
	switch d := d.(type) {
	case *sidebusv1.Topic:
		return api.UpdateTopic(ctx, &sidebusv1.UpdateTopicRequest{Name: resource, Topic: d, UpdateMask: mask})
	case *sidebusv1.Subscription:
		return api.UpdateSubscription(ctx,
			&sidebusv1.UpdateSubscriptionRequest{Name: resource, Subscription: d, UpdateMask: mask})
	default:
		return api.UpdateQueue(ctx, &sidebusv1.UpdateQueueRequest{
			Name: resource, Queue: d.(*sidebusv1.Queue),
			UpdateMask: mask,
		})
	}
}

// Queues returns all queues whose names begin with prefix, page by page.
func Queues(ctx context.Context, api sidebusv1.AdminClient, prefix string) ([]*sidebusv1.Queue, error) {
	return pages(func(token string) ([]*sidebusv1.Queue, string, error) {
		page, err := api.ListQueues(ctx, &sidebusv1.ListQueuesRequest{NamePrefix: prefix, PageToken: token})
		return page.GetQueues(), page.GetNextPageToken(), err
	})
}

// Topics returns all topics whose names begin with prefix.
func Topics(ctx context.Context, api sidebusv1.AdminClient, prefix string) ([]*sidebusv1.Topic, error) {
	return pages(func(token string) ([]*sidebusv1.Topic, string, error) {
		page, err := api.ListTopics(ctx, &sidebusv1.ListTopicsRequest{NamePrefix: prefix, PageToken: token})
		return page.GetTopics(), page.GetNextPageToken(), err
	})
}

// Subscriptions returns all subscriptions of a topic whose names begin with prefix.
func Subscriptions(
	ctx context.Context, api sidebusv1.AdminClient, topic, prefix string,
) ([]*sidebusv1.Subscription, error) {
	return pages(func(token string) ([]*sidebusv1.Subscription, string, error) {
		page, err := api.ListSubscriptions(
			ctx, &sidebusv1.ListSubscriptionsRequest{Topic: topic, NamePrefix: prefix, PageToken: token},
		)
		return page.GetSubscriptions(), page.GetNextPageToken(), err
	})
}

// Rules returns all rules of a subscription.
func Rules(ctx context.Context, api sidebusv1.AdminClient, subscription string) ([]*sidebusv1.Rule, error) {
	return pages(func(token string) ([]*sidebusv1.Rule, string, error) {
		page, err := api.ListRules(ctx, &sidebusv1.ListRulesRequest{Subscription: subscription, PageToken: token})
		return page.GetRules(), page.GetNextPageToken(), err
	})
}

// pages reads a list to its end.
func pages[T any](read func(token string) (page []T, next string, err error)) ([]T, error) {
	var all []T
	for token := ""; ; {
		page, next, err := read(token)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if token = next; token == "" {
			return all, nil
		}
	}
}
