package semantics

import (
	"context"
	"encoding/base64"
)

// MaxPageSize is the default and the most rows of one page of a list (ENT-17).
const MaxPageSize = 100

// Ensured is the answer of EnsureQueue.
type Ensured struct {
	Queue       Queue
	Created     bool
	Differences []Difference // options asked for that the present queue has otherwise; nothing was changed
}

// EnsureQueue creates the queue if its name is free, in one atomic step (ENT-6). given names the options the caller
// set, the others get their defaults. An existing queue stays as it is and the answer tells what differs.
// INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE.
func (b *Broker) EnsureQueue(ctx context.Context, name string, options QueueOptions, given []string) (Ensured, error) {
	path, options, err := b.checkQueue(name, options, given)
	if err != nil {
		return Ensured{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return Ensured{}, err
	}
	queue, created, err := b.store.CreateQueue(ctx, path, options)
	if err != nil {
		return Ensured{}, err
	}
	ensured := Ensured{Queue: queue, Created: created}
	if !created {
		ensured.Differences = queue.Options.Differences(options, given)
	}
	return ensured, nil
}

// CreateQueue creates the queue, or fails with ENTITY_ALREADY_EXISTS, even when the present one is equal (ENT-6).
// INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE.
func (b *Broker) CreateQueue(ctx context.Context, name string, options QueueOptions, given []string) (Queue, error) {
	path, options, err := b.checkQueue(name, options, given)
	if err != nil {
		return Queue{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return Queue{}, err
	}
	queue, created, err := b.store.CreateQueue(ctx, path, options)
	if err == nil && !created {
		err = Errorf(EntityAlreadyExists, "entity %q exists already; use PUT to create only if absent", queue.Name).
			With(DetailEntity, queue.Name)
	}
	return queue, err
}

func (b *Broker) checkQueue(name string, options QueueOptions, given []string) (string, QueueOptions, error) {
	path, err := ParsePath(name)
	if err != nil {
		return "", options, err
	}
	options, err = DefaultQueueOptions().Merge(options, given)
	if err != nil {
		return "", options, err
	}
	if options.RequiresSession {
		if err := b.refuseSessions(path); err != nil {
			return "", options, err
		}
	}
	return path, options, options.Validate()
}

// GetQueue reads a queue. INVALID_ARGUMENT, ENTITY_NOT_FOUND.
func (b *Broker) GetQueue(ctx context.Context, name string) (Queue, error) {
	path, err := ParsePath(name)
	if err != nil {
		return Queue{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return Queue{}, err
	}
	return b.store.GetQueue(ctx, path)
}

// UpdateQueue sets the named options and leaves the others alone (ENT-7, ENT-10). No names at all is
// INVALID_ARGUMENT. ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND; nothing is changed on failure.
func (b *Broker) UpdateQueue(ctx context.Context, name string, options QueueOptions, names []string) (Queue, error) {
	path, err := ParsePath(name)
	if err != nil {
		return Queue{}, err
	}
	if len(names) == 0 {
		return Queue{}, fieldError(InvalidArgument, "updateMask", "must name at least one option")
	}
	// Bounds hold option by option, so the defaults can stand in for the options that stay.
	checked, err := DefaultQueueOptions().Merge(options, names)
	if err != nil {
		return Queue{}, err
	}
	if err := checked.Validate(); err != nil {
		return Queue{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return Queue{}, err
	}
	return b.store.UpdateQueue(ctx, path, options, names)
}

// DeleteQueue removes a queue and all it holds (ENT-8). INVALID_ARGUMENT, ENTITY_NOT_FOUND.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error {
	path, err := ParsePath(name)
	if err != nil {
		return err
	}
	if err := b.admit(managementCost); err != nil {
		return err
	}
	return b.store.DeleteQueue(ctx, path)
}

// ListQueues gives one page of queues in order of name and the token of the next page, "" after the last (ENT-17).
// pageSize 0 means MaxPageSize. ARGUMENT_OUT_OF_RANGE, INVALID_ARGUMENT for a token it did not make.
func (b *Broker) ListQueues(ctx context.Context, pageSize int, pageToken string) ([]Queue, string, error) {
	if pageSize == 0 {
		pageSize = MaxPageSize
	}
	if pageSize < 1 || pageSize > MaxPageSize {
		return nil, "", fieldError(ArgumentOutOfRange, "pageSize", "is %d, must be 1 to %d", pageSize, MaxPageSize)
	}
	after, err := base64.RawURLEncoding.DecodeString(pageToken)
	if err != nil {
		return nil, "", fieldError(InvalidArgument, "pageToken", "is not a token of an earlier page")
	}
	if err := b.admit(managementCost); err != nil {
		return nil, "", err
	}
	queues, more, err := b.store.ListQueues(ctx, string(after), pageSize)
	if err != nil || !more || len(queues) == 0 {
		return queues, "", err
	}
	last := Fold(queues[len(queues)-1].Name)
	return queues, base64.RawURLEncoding.EncodeToString([]byte(last)), nil
}

// QueueRuntime counts a queue (CNT-1, CNT-2). INVALID_ARGUMENT, ENTITY_NOT_FOUND.
func (b *Broker) QueueRuntime(ctx context.Context, name string) (Runtime, error) {
	path, err := ParsePath(name)
	if err != nil {
		return Runtime{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return Runtime{}, err
	}
	return b.store.QueueRuntime(ctx, path)
}
