package main

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// ensured is the answer to an ensure.
type ensured interface {
	proto.Message
	GetCreated() bool
	GetDifferences() []*sidebusv1.Difference
}

// blank gives an empty description of an entity.
func blank(resource string) client.Description {
	switch client.Kind(resource) {
	case semantics.TopicKind:
		return &sidebusv1.Topic{}
	case semantics.SubscriptionKind:
		return &sidebusv1.Subscription{}
	default:
		return &sidebusv1.Queue{}
	}
}

// describe reads an entity.
func (o *operator) describe(ctx context.Context, resource string) (client.Description, error) {
	switch client.Kind(resource) {
	case semantics.TopicKind:
		return o.GetTopic(ctx, &sidebusv1.GetTopicRequest{Name: resource})
	case semantics.SubscriptionKind:
		return o.GetSubscription(ctx, &sidebusv1.GetSubscriptionRequest{Name: resource})
	default:
		return o.GetQueue(ctx, &sidebusv1.GetQueueRequest{Name: resource})
	}
}

// create makes the entity that d, made by blank, describes.
func (o *operator) create(ctx context.Context, resource string, d client.Description) (client.Description, error) {
	switch d := d.(type) {
	case *sidebusv1.Topic:
		d.Name = resource[len("topics/"):]
		return o.CreateTopic(ctx, &sidebusv1.CreateTopicRequest{Topic: d})
	case *sidebusv1.Subscription:
		topic, name := client.TopicOf(resource)
		d.Name = name
		return o.CreateSubscription(ctx, &sidebusv1.CreateSubscriptionRequest{Topic: topic, Subscription: d})
	default:
		queue := d.(*sidebusv1.Queue)
		queue.Name = client.Name(resource)
		return o.CreateQueue(ctx, &sidebusv1.CreateQueueRequest{Queue: queue})
	}
}

// ensure makes the entity if there is none.
func (o *operator) ensure(ctx context.Context, resource string, d client.Description) (ensured, error) {
	switch d := d.(type) {
	case *sidebusv1.Topic:
		return o.EnsureTopic(ctx, &sidebusv1.EnsureTopicRequest{Name: resource, Topic: d})
	case *sidebusv1.Subscription:
		return o.EnsureSubscription(ctx, &sidebusv1.EnsureSubscriptionRequest{Name: resource, Subscription: d})
	default:
		return o.EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: resource, Queue: d.(*sidebusv1.Queue)})
	}
}

// update changes the options of the entity that paths names.
func (o *operator) update(ctx context.Context, resource string, d client.Description, paths []string) (client.Description, error) {
	mask := &fieldmaskpb.FieldMask{Paths: paths}
	switch d := d.(type) {
	case *sidebusv1.Topic:
		return o.UpdateTopic(ctx, &sidebusv1.UpdateTopicRequest{Name: resource, Topic: d, UpdateMask: mask})
	case *sidebusv1.Subscription:
		return o.UpdateSubscription(ctx, &sidebusv1.UpdateSubscriptionRequest{Name: resource, Subscription: d, UpdateMask: mask})
	default:
		return o.UpdateQueue(ctx, &sidebusv1.UpdateQueueRequest{Name: resource, Queue: d.(*sidebusv1.Queue), UpdateMask: mask})
	}
}

// remove removes the entity.
func (o *operator) remove(ctx context.Context, resource string) (proto.Message, error) {
	switch client.Kind(resource) {
	case semantics.TopicKind:
		return o.DeleteTopic(ctx, &sidebusv1.DeleteTopicRequest{Name: resource})
	case semantics.SubscriptionKind:
		return o.DeleteSubscription(ctx, &sidebusv1.DeleteSubscriptionRequest{Name: resource})
	default:
		return o.DeleteQueue(ctx, &sidebusv1.DeleteQueueRequest{Name: resource})
	}
}

// lockDuration is how long a queue or subscription locks its sessions.
func (o *operator) lockDuration(ctx context.Context, resource string) (time.Duration, error) {
	d, err := o.describe(ctx, resource)
	if source, ok := d.(interface{ GetLockDuration() *durationpb.Duration }); ok && err == nil {
		return source.GetLockDuration().AsDuration(), nil
	}
	return 0, err
}

// count counts a queue or subscription. Of a topic it is a failure that says so.
func (o *operator) count(ctx context.Context, resource string) (*sidebusv1.QueueRuntime, error) {
	if client.Kind(resource) == semantics.QueueKind {
		return o.GetQueueRuntime(ctx, &sidebusv1.GetQueueRuntimeRequest{Name: resource})
	}
	return o.GetSubscriptionRuntime(ctx, &sidebusv1.GetSubscriptionRuntimeRequest{Name: resource})
}

// countTopic counts a topic.
func (o *operator) countTopic(ctx context.Context, resource string) (*sidebusv1.TopicRuntime, error) {
	return o.GetTopicRuntime(ctx, &sidebusv1.GetTopicRuntimeRequest{Name: resource})
}

// queues, topics and subscriptions give all entities of a kind whose names begin with prefix, page by page.
func (o *operator) queues(ctx context.Context, prefix string) ([]*sidebusv1.Queue, error) {
	return pages(func(token string) ([]*sidebusv1.Queue, string, error) {
		page, err := o.ListQueues(ctx, &sidebusv1.ListQueuesRequest{NamePrefix: prefix, PageToken: token})
		return page.GetQueues(), page.GetNextPageToken(), err
	})
}

func (o *operator) topics(ctx context.Context, prefix string) ([]*sidebusv1.Topic, error) {
	return pages(func(token string) ([]*sidebusv1.Topic, string, error) {
		page, err := o.ListTopics(ctx, &sidebusv1.ListTopicsRequest{NamePrefix: prefix, PageToken: token})
		return page.GetTopics(), page.GetNextPageToken(), err
	})
}

func (o *operator) subscriptions(ctx context.Context, topic, prefix string) ([]*sidebusv1.Subscription, error) {
	return pages(func(token string) ([]*sidebusv1.Subscription, string, error) {
		page, err := o.ListSubscriptions(ctx, &sidebusv1.ListSubscriptionsRequest{Topic: topic, NamePrefix: prefix, PageToken: token})
		return page.GetSubscriptions(), page.GetNextPageToken(), err
	})
}

// rules gives all rules of a subscription.
func (o *operator) rules(ctx context.Context, subscription string) ([]*sidebusv1.Rule, error) {
	return pages(func(token string) ([]*sidebusv1.Rule, string, error) {
		page, err := o.ListRules(ctx, &sidebusv1.ListRulesRequest{Subscription: subscription, PageToken: token})
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
