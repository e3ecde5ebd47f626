package verbs

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

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

// create creates the entity that d, made by client.Blank, describes.
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
