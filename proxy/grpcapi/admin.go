package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Admin serves sidebus.v1.Admin. It is safe for concurrent use.
type Admin struct {
	sidebusv1.UnimplementedAdminServer

	broker *semantics.Broker
}

// NewAdmin makes an Admin over broker.
func NewAdmin(broker *semantics.Broker) *Admin { return &Admin{broker: broker} }

// EnsureQueue makes a queue if its name is free; see semantics.Broker.EnsureEntity.
func (a *Admin) EnsureQueue(ctx context.Context, request *sidebusv1.EnsureQueueRequest) (*sidebusv1.EnsureQueueResponse, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	name, err := queueName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkSameName(name, request.GetQueue()); err != nil {
		return nil, err
	}
	options, given, err := optionsOf(request.GetQueue())
	if err != nil {
		return nil, err
	}
	ensured, err := a.broker.EnsureEntity(ctx, semantics.QueueKind, name, options, given)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.EnsureQueueResponse{Created: ensured.Created, Resource: queueFrom(ensured.Entity)}
	for _, d := range ensured.Differences {
		response.Differences = append(response.Differences, &sidebusv1.EnsureQueueResponse_Difference{
			Option: d.Option, Present: d.Present, Asked: d.Asked,
		})
	}
	return response, nil
}

// CreateQueue makes a queue; see semantics.Broker.CreateEntity.
func (a *Admin) CreateQueue(ctx context.Context, request *sidebusv1.CreateQueueRequest) (*sidebusv1.Queue, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	options, given, err := optionsOf(request.GetQueue())
	if err != nil {
		return nil, err
	}
	queue, err := a.broker.CreateEntity(ctx, semantics.QueueKind, request.GetQueue().GetName(), options, given)
	if err != nil {
		return nil, err
	}
	return queueFrom(queue), nil
}

// GetQueue reads a queue; see semantics.Broker.GetEntity.
func (a *Admin) GetQueue(ctx context.Context, request *sidebusv1.GetQueueRequest) (*sidebusv1.Queue, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	name, err := queueName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	queue, err := a.broker.GetEntity(ctx, semantics.QueueKind, name)
	if err != nil {
		return nil, err
	}
	return queueFrom(queue), nil
}

// ListQueues gives one page of queues; see semantics.Broker.ListEntities.
func (a *Admin) ListQueues(ctx context.Context, request *sidebusv1.ListQueuesRequest) (*sidebusv1.ListQueuesResponse, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	queues, next, err := a.broker.ListEntities(ctx, semantics.QueueKind, "", int(request.GetPageSize()), request.GetPageToken())
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.ListQueuesResponse{Queues: make([]*sidebusv1.Queue, len(queues)), NextPageToken: next}
	for i, queue := range queues {
		response.Queues[i] = queueFrom(queue)
	}
	return response, nil
}

// UpdateQueue changes options of a queue; see semantics.Broker.UpdateEntity.
func (a *Admin) UpdateQueue(ctx context.Context, request *sidebusv1.UpdateQueueRequest) (*sidebusv1.Queue, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	name, err := queueName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkSameName(name, request.GetQueue()); err != nil {
		return nil, err
	}
	options, names, err := optionsOf(request.GetQueue())
	if err != nil {
		return nil, err
	}
	if request.GetUpdateMask() != nil {
		names = maskOf(request.GetUpdateMask().GetPaths()) // one that is absent has its default in options
	}
	queue, err := a.broker.UpdateEntity(ctx, semantics.QueueKind, name, options, names)
	if err != nil {
		return nil, err
	}
	return queueFrom(queue), nil
}

// DeleteQueue removes a queue; see semantics.Broker.DeleteEntity.
func (a *Admin) DeleteQueue(ctx context.Context, request *sidebusv1.DeleteQueueRequest) (*sidebusv1.DeleteQueueResponse, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	name, err := queueName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if err := a.broker.DeleteEntity(ctx, semantics.QueueKind, name); err != nil {
		return nil, err
	}
	return &sidebusv1.DeleteQueueResponse{}, nil
}

// GetQueueRuntime counts a queue; see semantics.Broker.Runtime.
func (a *Admin) GetQueueRuntime(ctx context.Context, request *sidebusv1.GetQueueRuntimeRequest) (*sidebusv1.QueueRuntime, error) {
	if err := refuseUnknown("request", request); err != nil {
		return nil, err
	}
	name, err := queueName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	r, err := a.broker.Runtime(ctx, semantics.QueueKind, name)
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
		OldestEnqueuedTime:             timestamp(r.OldestEnqueuedAt),
		DeferredCount:                  r.Deferred,
		ScheduledMessageCount:          r.Scheduled,
		DelayedCount:                   r.Delayed,
		TransferMessageCount:           r.Transfer,
		TransferDeadLetterMessageCount: r.TransferDeadLetter,
		SessionCount:                   r.Sessions,
		ReadySessionCount:              r.ReadySessions,
		LockedSessionCount:             r.LockedSessions,
	}, nil
}

// checkSameName refuses a description that names another queue than the request, which would be a mix-up.
func checkSameName(name string, queue *sidebusv1.Queue) error {
	if other := queue.GetName(); other != "" && semantics.Fold(other) != semantics.Fold(name) {
		return fieldError("name", "is %q in the description and %q in the request", other, name)
	}
	return nil
}
