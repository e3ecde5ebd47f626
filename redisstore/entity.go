package redisstore

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// kindOf returns the kind of an entity that a caller names: the path of a subscription always names a subscription.
func kindOf(kind semantics.Kind, path string) semantics.Kind {
	if _, _, ok := semantics.SplitSubscription(path); ok {
		return semantics.SubscriptionKind
	}
	return kind
}

// CreateEntity implements semantics.Entities. A full Redis creates only partitions that are missing. What is there
// already is found.
func (s *Store) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (entity semantics.Entity, created bool, err error) {
	ctx = anyHistory(ctx) // what it looks at may belong to no entity
	entity, created, err = s.createEntity(ctx, kind, path, options)
	if !isFull(err) || semantics.IsOutcomeUnknown(err) {
		return entity, created, err
	}
	found, failed := s.anyEntity(ctx, path)
	if semantics.CodeOf(failed) == semantics.EntityNotFound {
		return entity, false, err
	}
	return found, false, failed
}

// createEntity is CreateEntity of a Redis that is not full. The name is put on the namespace's list before the entity
// is created, so that no entity exists without its name, and is checked again afterwards.
func (s *Store) createEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	if err := s.refuseNewLevel(ctx, path, options); err != nil {
		return semantics.Entity{}, false, err
	}
	incarnation, err := s.incarnationOf(ctx, kind, path, options.Partitions)
	if err != nil {
		return semantics.Entity{}, false, err
	}
	above := int64(0)
	for {
		ticket, err := s.registerName(ctx, path, above)
		if err != nil {
			return semantics.Entity{}, false, err
		}
		args := s.createArgs(kind, path, options, incarnation, ticket)
		r, err := s.run(ctx, following("create_entity", path), s.keys(path), args...)
		if err != nil {
			return semantics.Entity{}, false, err
		}
		switch r.status {
		case "HALF_DELETED":
			if err := s.deleteLeft(ctx, path); err != nil {
				return semantics.Entity{}, false, err
			}
			continue
		case "SUSPENDED":
			return semantics.Entity{}, false, suspendedBy(r)
		case "NAME_GONE":
			if above = r.number(); r.failure() != nil {
				return semantics.Entity{}, false, r.failure()
			}
			if above == forGood {
				return semantics.Entity{}, false, s.notThere(ctx, kind, path)
			}
			continue
		}
		entity, err := readEntity(r)
		if err != nil {
			return entity, false, err
		}
		if err := s.deleteLeftPartitions(ctx, path, entity.Incarnation); err != nil {
			return entity, false, mayHaveRun(err)
		}
		if r.status != "OK" {
			return entity, false, nil
		}
		// Redis may have forgotten the name before the entity was created. Registering it now is not subject to
		// MaxEntities, because the entity exists.
		listed, err := s.listName(ctx, path, 0, 0)
		if err == nil && listed != ticket { // or the entity was deleted since, with its name
			err = s.forgetName(ctx, path)
		}
		if err != nil {
			return entity, false, mayHaveRun(err)
		}
		s.alarmUnused(ctx, entity)
		return entity, true, nil
	}
}

// refuseNewLevel is refuseOwnLevel for an entity that is to be created. If it is there already, its level stays.
func (s *Store) refuseNewLevel(ctx context.Context, path string, options semantics.Options) error {
	unfit := s.refuseOwnLevel(ctx, options)
	if unfit == nil {
		return nil
	}
	if _, err := s.anyEntity(ctx, path); err == nil {
		return nil
	}
	return unfit
}

// createArgs returns the arguments of create_entity.lua.
func (s *Store) createArgs(
	kind semantics.Kind, path string, options semantics.Options, incarnation, ticket int64,
) []any {
	fields := appendOptions([]any{"name", path, "incarnation", incarnation}, options, semantics.OptionNames(kind))
	unmatchedTo := ""
	if kind == semantics.TopicKind {
		fields = append(fields, "version", newMark())
		unmatchedTo = options.UnmatchedTo
	} else {
		fields = append(fields, "keyed", flag(options.RequiresDuplicateDetection || options.EnablePartitioning ||
			options.RequiresSession))
	}
	word := kind.String()
	if options.Partitions > 1 {
		word, fields, unmatchedTo = recordKind(kind), recordFields(fields), "" // each partition has its own
	}
	args := append([]any{s.now(), word, unmatchedTo, ticket, len(fields)}, fields...)
	return append(args, unmatchedFields(path, unmatchedTo)...)
}

// unmatchedFields returns the fields with which that subscription is created, none if the topic needs no such
// subscription.
func unmatchedFields(topic, unmatchedTo string) []any {
	if unmatchedTo == "" {
		return nil
	}
	name := semantics.SubscriptionPath(topic, semantics.UnmatchedSubscription)
	return appendOptions(
		[]any{"name", name, "incarnation", newMark()}, semantics.DefaultOptions(),
		semantics.OptionNames(semantics.SubscriptionKind),
	)
}

// GetEntity implements semantics.Entities.
func (s *Store) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	entity, err := s.anyEntity(ctx, path)
	if err == nil && entity.Kind != kindOf(kind, path) {
		err = semantics.NotFound(path)
	}
	if err != nil {
		return semantics.Entity{}, err
	}
	return entity, nil
}

// anyEntity reads an entity of any kind.
func (s *Store) anyEntity(ctx context.Context, path string) (semantics.Entity, error) {
	r, err := s.run(ctx, "get_entity", s.keys(path))
	if err != nil {
		return semantics.Entity{}, err
	}
	if r.status != "OK" {
		return semantics.Entity{}, semantics.NotFound(path)
	}
	return readEntity(r)
}

// anyPartition is anyEntity also for a partition that a removal has suspended, which it returns, else 0.
func (s *Store) anyPartition(ctx context.Context, path string) (part semantics.Entity, removal int64, err error) {
	part, err = s.anyEntity(ctx, path)
	if semantics.CodeOf(err) != semantics.EntityNotFound {
		return part, 0, err
	}
	r, failed := s.run(ctx, "get_suspended", s.keys(path))
	switch {
	case failed != nil:
		return part, 0, failed
	case r.status != "OK":
		return part, 0, err
	}
	if part, err = readEntity(r); err == nil {
		removal, err = r.number(), r.failure()
	}
	return part, removal, err
}

// notFound returns the error of a verb that receives from a path without messages: nothing is there, or a topic, of
// which only the subscriptions have messages (TOPIC-8).
func (s *Store) notFound(ctx context.Context, path string) error {
	entity, err := s.anyEntity(ctx, path)
	switch {
	case semantics.CodeOf(err) == semantics.EntityNotFound, err == nil && entity.Kind != semantics.TopicKind:
		return semantics.NotFound(path)
	case err != nil:
		return err
	default:
		return semantics.NotASource(entity.Name)
	}
}

// UpdateEntity implements semantics.Entities.
func (s *Store) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	_, name, _ := semantics.SplitSubscription(path)
	kind = kindOf(kind, path)
	fields, unmatchedTo := appendOptions(nil, options, names), ""
	if kind == semantics.TopicKind && slices.Contains(names, "unmatchedTo") {
		unmatchedTo = options.UnmatchedTo
	}
	if slices.Contains(names, "durability") {
		if err := s.refuseOwnLevel(ctx, options); err != nil {
			return semantics.Entity{}, err
		}
	}
	args := func(word string, fields []any, unmatchedTo string) []any {
		args := append([]any{s.now(), word, semantics.Fold(name), unmatchedTo, newMark(), len(fields)}, fields...)
		return append(args, unmatchedFields(path, unmatchedTo)...)
	}
	r, err := s.run(ctx, following("update_entity", path), s.keys(path), args(kind.String(), fields, unmatchedTo)...)
	if err == nil && kind != semantics.SubscriptionKind && r.status == string(semantics.EntityNotFound) {
		r, err = s.run(ctx, "update_entity", s.keys(path), args(recordKind(kind), recordFields(fields), "")...)
	}
	if err != nil {
		return semantics.Entity{}, err
	}
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return semantics.Entity{}, semantics.NotFound(path)
	case semantics.PropertyImmutable:
		return semantics.Entity{}, semantics.ImmutableChanged(path, optionOfField(r.text()))
	default:
		s.apply(ctx, path, r)
		entity, err := readEntity(r)
		if err == nil {
			s.alarmUnused(ctx, entity)
		}
		return entity, err
	}
}

// DeleteEntity implements semantics.Entities.
func (s *Store) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	return s.deleteEntity(ctx, kindOf(kind, path), path, asked)
}

// deletion is why an entity is deleted.
type deletion uint8

const (
	asked  deletion = iota // by a caller
	unused                 // only if it was unused for long enough (IDLE-1); else the error is inUse
	isLeft                 // what is left of a subscription when its topic was deleted
)

// deleteEntity deletes an entity and then its name, unless Redis has forgotten in between that the entity is gone.
func (s *Store) deleteEntity(ctx context.Context, kind semantics.Kind, path string, why deletion) error {
	return s.Unbroken(anyHistory(ctx), func(ctx context.Context) error {
		switch kind {
		case semantics.TopicKind:
			return s.deleteTopic(ctx, path, why)
		case semantics.SubscriptionKind:
			return s.deleteSubscription(ctx, path, why, "")
		default:
			return s.deleteQueue(ctx, kind, path, why, kind.String(), "", "")
		}
	})
}

// deleteQueue deletes a queue, or the record of an entity with several partitions. stored is the kind that Redis has;
// incarnation and removal are "" for a queue, removal also for a record that need not be idle.
func (s *Store) deleteQueue(
	ctx context.Context, kind semantics.Kind, path string, why deletion, stored string, incarnation, removal any,
) error {
	return s.deleted(
		ctx, kind, path, why, "delete_queue", with(s.keys(path), s.keys(path).deleted()...), s.now(),
		flag(why == unused), stored, incarnation, removal,
	)
}

// deleted runs a script that deletes an entity and takes its name off the namespace's list.
func (s *Store) deleted(
	ctx context.Context, kind semantics.Kind, path string, why deletion, script string, keys keyNames, args ...any,
) error {
	r, err := s.run(ctx, script, keys, args...)
	switch {
	case err != nil:
		return err
	case r.status == "IN_USE":
		return stillInUse(r)
	case r.status != "OK":
		return s.notThere(ctx, kind, path)
	}
	s.reportRemoved(kind, path, why)
	return s.unregisterDeleted(ctx, path, r)
}

// ListEntities implements semantics.Entities.
func (s *Store) ListEntities(
	ctx context.Context, kind semantics.Kind, topic, after string, limit int,
) ([]semantics.Entity, bool, error) {
	if kind == semantics.SubscriptionKind {
		return s.listSubscriptions(ctx, topic, after, limit)
	}
	var found []semantics.Entity
	for {
		// One more than asked for shows whether there is a next page.
		names, err := s.listNames(ctx, after, limit+1)
		if err != nil {
			return nil, false, err
		}
		page, err := s.readEntities(ctx, withoutPartitions(names))
		if err != nil {
			return nil, false, err
		}
		for _, entity := range page {
			if entity.Kind != kind {
				continue
			}
			if len(found) == limit {
				return found, true, nil
			}
			found = append(found, entity)
		}
		if len(names) <= limit {
			return found, false, nil
		}
		after = names[limit]
	}
}

// readEntities reads entities with one pipeline and skips those that do not exist.
func (s *Store) readEntities(ctx context.Context, paths []string) ([]semantics.Entity, error) {
	reads := make([]*redis.Cmd, len(paths))
	_, err := s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, path := range paths {
			reads[i] = p.Do(ctx, "HGETALL", s.keys(path).key("entity"))
		}
		return nil
	})
	if err != nil {
		return nil, storeError(err, false)
	}
	var found []semantics.Entity
	for _, cmd := range reads {
		entity, err := readEntity(&reply{script: "HGETALL", items: []any{cmd.Val()}})
		if err != nil {
			return nil, err
		}
		if entity.Name != "" {
			found = append(found, entity)
		}
	}
	return found, nil
}
