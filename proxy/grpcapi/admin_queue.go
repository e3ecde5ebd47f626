package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// EnsureQueue creates a queue if its name is free.
func (a *Admin) EnsureQueue(
	ctx context.Context, request *sidebusv1.EnsureQueueRequest,
) (*sidebusv1.EnsureQueueResponse, error) {
	ensured, err := a.ensure(ctx, semantics.QueueKind, request, request.GetQueue())
	if err != nil {
		return nil, err
	}
	return &sidebusv1.EnsureQueueResponse{
		Created: ensured.Created, Resource: wire.QueueFrom(ensured.Entity),
		Differences: differencesFrom(ensured.Differences),
	}, nil
}

// CreateQueue creates a queue.
func (a *Admin) CreateQueue(ctx context.Context, request *sidebusv1.CreateQueueRequest) (*sidebusv1.Queue, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	queue, err := a.create(ctx, semantics.QueueKind, request.GetQueue().GetName(), request.GetQueue())
	if err != nil {
		return nil, err
	}
	return wire.QueueFrom(queue), nil
}

// GetQueue reads a queue.
func (a *Admin) GetQueue(ctx context.Context, request *sidebusv1.GetQueueRequest) (*sidebusv1.Queue, error) {
	queue, err := a.get(ctx, semantics.QueueKind, request)
	if err != nil {
		return nil, err
	}
	return wire.QueueFrom(queue), nil
}

// ListQueues returns one page of queues.
func (a *Admin) ListQueues(
	ctx context.Context, request *sidebusv1.ListQueuesRequest,
) (*sidebusv1.ListQueuesResponse, error) {
	queues, next, err := a.list(ctx, semantics.QueueKind, "", request)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.ListQueuesResponse{Queues: make([]*sidebusv1.Queue, len(queues)), NextPageToken: next}
	for i, queue := range queues {
		response.Queues[i] = wire.QueueFrom(queue)
	}
	return response, nil
}

// UpdateQueue changes options of a queue.
func (a *Admin) UpdateQueue(ctx context.Context, request *sidebusv1.UpdateQueueRequest) (*sidebusv1.Queue, error) {
	queue, err := a.update(ctx, semantics.QueueKind, request, request.GetQueue(), request.GetUpdateMask())
	if err != nil {
		return nil, err
	}
	return wire.QueueFrom(queue), nil
}

// DeleteQueue removes a queue.
func (a *Admin) DeleteQueue(
	ctx context.Context, request *sidebusv1.DeleteQueueRequest,
) (*sidebusv1.DeleteQueueResponse, error) {
	if err := a.remove(ctx, semantics.QueueKind, request); err != nil {
		return nil, err
	}
	return &sidebusv1.DeleteQueueResponse{}, nil
}

// GetQueueRuntime returns the counts of a queue.
func (a *Admin) GetQueueRuntime(
	ctx context.Context, request *sidebusv1.GetQueueRuntimeRequest,
) (*sidebusv1.QueueRuntime, error) {
	return a.countSource(ctx, semantics.QueueKind, request)
}

// countSource returns the counts of a queue or a subscription.
func (a *Admin) countSource(
	ctx context.Context, kind semantics.Kind, request entityRequest,
) (*sidebusv1.QueueRuntime, error) {
	r, err := a.runtime(ctx, kind, request)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.QueueRuntime{
		ActiveMessageCount:             r.Active,
		AvailableCount:                 r.Available,
		LockedCount:                    r.Locked,
		ExpiredPendingCount:            r.ExpiredPending,
		DeadLetterMessageCount:         r.DeadLetter,
		TotalMessageCount:              r.Total(),
		SizeInBytes:                    r.SizeInBytes,
		OldestEnqueuedTime:             wire.TimestampFrom(r.OldestEnqueuedAt),
		DeferredCount:                  r.Deferred,
		ScheduledMessageCount:          r.Scheduled,
		DelayedCount:                   r.Delayed,
		TransferMessageCount:           r.Transfer,
		TransferDeadLetterMessageCount: r.TransferDeadLetter,
		SessionCount:                   r.Sessions,
		ReadySessionCount:              r.ReadySessions,
		LockedSessionCount:             r.LockedSessions,
		BlockedSessionCount:            r.BlockedSessions,
		CreatedAt:                      wire.TimestampFrom(r.CreatedAt),
		UpdatedAt:                      wire.TimestampFrom(r.UpdatedAt),
		AccessedAt:                     wire.TimestampFrom(r.AccessedAt),
		Partitions:                     partitionRuntimes(r.Partitions),
	}, nil
}

func partitionRuntimes(counts []semantics.Runtime) []*sidebusv1.PartitionRuntime {
	all := make([]*sidebusv1.PartitionRuntime, len(counts))
	for p, r := range counts {
		all[p] = &sidebusv1.PartitionRuntime{
			PartitionId:                    int32(p), //nolint:gosec // below MaxPartitions
			ActiveMessageCount:             r.Active,
			AvailableCount:                 r.Available,
			LockedCount:                    r.Locked,
			DeferredCount:                  r.Deferred,
			ScheduledMessageCount:          r.Scheduled,
			DeadLetterMessageCount:         r.DeadLetter,
			TransferMessageCount:           r.Transfer,
			TransferDeadLetterMessageCount: r.TransferDeadLetter,
			SizeInBytes:                    r.SizeInBytes,
			OldestEnqueuedTime:             wire.TimestampFrom(r.OldestEnqueuedAt),
			SessionCount:                   r.Sessions,
		}
	}
	return all
}
