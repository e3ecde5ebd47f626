package semantics

import "context"

// MaxPageSize is the default and the most rows of one page of a list (ENT-17).
const MaxPageSize = 100

// Entities manages queues, topics and subscriptions. A path with the segment "Subscriptions" names a subscription, see
// SubscriptionPath; the kind given with another path must be QueueKind or TopicKind. An entity of another kind is
// ENTITY_NOT_FOUND, except for creation.
type Entities interface {
	// CreateEntity creates a queue or a topic, or returns the present one unchanged with created=false when the name
	// is taken, be it by one of the other kind (ENT-2, ENT-6). QUOTA_EXCEEDED (QUOTA-1).
	CreateEntity(ctx context.Context, kind Kind, path string, options Options) (entity Entity, created bool, err error)

	// CreateSubscription creates a subscription with its first rules in one step (RULE-1), or returns the present one
	// unchanged with created=false (ENT-2, ENT-6). ENTITY_NOT_FOUND when there is no such topic, QUOTA_EXCEEDED
	// (RULE-4).
	CreateSubscription(
		ctx context.Context, path string, options Options, rules []Rule,
	) (entity Entity, created bool, err error)

	// GetEntity reads an entity. It does not count as activity (IDLE-7). ENTITY_NOT_FOUND.
	GetEntity(ctx context.Context, kind Kind, path string) (Entity, error)

	// UpdateEntity sets the named options (OptionNames) to the values in options, leaves the others alone and wakes all
	// waiting receivers. Stored messages and locks stay as they are (ENT-10). ENTITY_NOT_FOUND, and PROPERTY_IMMUTABLE
	// when one of them is Immutable and differs (ENT-7): nothing is changed then.
	UpdateEntity(ctx context.Context, kind Kind, path string, options Options, names []string) (Entity, error)

	// DeleteEntity removes an entity and all it holds, a topic with its subscriptions, and wakes all waiting receivers
	// (ENT-8). From the first step on no call finds it, and it can be created again, empty, when the call has returned.
	// If the call fails halfway, the next deletion or creation of an entity of that name completes it, partitions
	// included. ENTITY_NOT_FOUND.
	DeleteEntity(ctx context.Context, kind Kind, path string) error

	// ListEntities returns up to limit entities of a kind in order of their folded names, beginning after the given
	// folded name ("" = from the start). topic is the path of the topic whose subscriptions are listed, else "". more
	// reports whether others follow. ENTITY_NOT_FOUND for the topic.
	ListEntities(
		ctx context.Context, kind Kind, topic, after string, limit int,
	) (entities []Entity, more bool, err error)

	// Runtime counts an entity: a queue or subscription in O(log n) (CNT-4), a topic in O(subscriptions).
	// ENTITY_NOT_FOUND.
	Runtime(ctx context.Context, kind Kind, path string) (Runtime, error)
}
