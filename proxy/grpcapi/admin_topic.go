package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// EnsureTopic creates a topic if its name is free.
func (a *Admin) EnsureTopic(
	ctx context.Context, request *sidebusv1.EnsureTopicRequest,
) (*sidebusv1.EnsureTopicResponse, error) {
	ensured, err := a.ensure(ctx, semantics.TopicKind, request, request.GetTopic())
	if err != nil {
		return nil, err
	}
	return &sidebusv1.EnsureTopicResponse{
		Created: ensured.Created, Resource: wire.TopicFrom(ensured.Entity),
		Differences: differencesFrom(ensured.Differences),
	}, nil
}

// CreateTopic creates a topic.
func (a *Admin) CreateTopic(ctx context.Context, request *sidebusv1.CreateTopicRequest) (*sidebusv1.Topic, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	topic, err := a.create(ctx, semantics.TopicKind, request.GetTopic().GetName(), request.GetTopic())
	if err != nil {
		return nil, err
	}
	return wire.TopicFrom(topic), nil
}

// GetTopic reads a topic.
func (a *Admin) GetTopic(ctx context.Context, request *sidebusv1.GetTopicRequest) (*sidebusv1.Topic, error) {
	topic, err := a.get(ctx, semantics.TopicKind, request)
	if err != nil {
		return nil, err
	}
	return wire.TopicFrom(topic), nil
}

// ListTopics returns one page of topics.
func (a *Admin) ListTopics(
	ctx context.Context, request *sidebusv1.ListTopicsRequest,
) (*sidebusv1.ListTopicsResponse, error) {
	topics, next, err := a.list(ctx, semantics.TopicKind, "", request)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.ListTopicsResponse{Topics: make([]*sidebusv1.Topic, len(topics)), NextPageToken: next}
	for i, topic := range topics {
		response.Topics[i] = wire.TopicFrom(topic)
	}
	return response, nil
}

// UpdateTopic changes options of a topic.
func (a *Admin) UpdateTopic(ctx context.Context, request *sidebusv1.UpdateTopicRequest) (*sidebusv1.Topic, error) {
	topic, err := a.update(ctx, semantics.TopicKind, request, request.GetTopic(), request.GetUpdateMask())
	if err != nil {
		return nil, err
	}
	return wire.TopicFrom(topic), nil
}

// DeleteTopic removes a topic with its subscriptions.
func (a *Admin) DeleteTopic(
	ctx context.Context, request *sidebusv1.DeleteTopicRequest,
) (*sidebusv1.DeleteTopicResponse, error) {
	if err := a.remove(ctx, semantics.TopicKind, request); err != nil {
		return nil, err
	}
	return &sidebusv1.DeleteTopicResponse{}, nil
}

// GetTopicRuntime returns the counts of a topic.
func (a *Admin) GetTopicRuntime(
	ctx context.Context, request *sidebusv1.GetTopicRuntimeRequest,
) (*sidebusv1.TopicRuntime, error) {
	r, err := a.runtime(ctx, semantics.TopicKind, request)
	if err != nil {
		return nil, err
	}
	partitions := make([]*sidebusv1.TopicPartitionRuntime, len(r.Partitions))
	for p, one := range r.Partitions {
		partitions[p] = &sidebusv1.TopicPartitionRuntime{
			PartitionId:           int32(p), //nolint:gosec // below MaxPartitions
			ScheduledMessageCount: one.Scheduled, SizeInBytes: one.SizeInBytes,
		}
	}
	return &sidebusv1.TopicRuntime{
		ScheduledMessageCount: r.Scheduled, SubscriptionCount: r.Subscriptions, SizeInBytes: r.SizeInBytes,
		CreatedAt:  wire.TimestampFrom(r.CreatedAt),
		UpdatedAt:  wire.TimestampFrom(r.UpdatedAt),
		AccessedAt: wire.TimestampFrom(r.AccessedAt),
		Partitions: partitions,
	}, nil
}
