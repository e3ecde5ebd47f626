package redisstore

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// The list of the names of a namespace and its entities lie in different slots, so no script changes both. A name is
// put on the list before its entity is created and removed after it was deleted. If the two race, the ticket of the
// name decides: see lua/register_name.lua.

// registerName puts a name on the list and returns its ticket, which is higher than above.
func (s *Store) registerName(ctx context.Context, path string, above int64) (ticket int64, err error) {
	limit := s.options.MaxEntities
	if semantics.IsPartition(path) {
		limit = 0 // its entity was admitted
	}
	return s.listName(ctx, path, limit, above)
}

func (s *Store) listName(ctx context.Context, path string, limit, above int64) (ticket int64, err error) {
	name := semantics.Fold(path)
	registry := s.registryOf(name)
	elsewhere := int64(0)
	if limit > 0 {
		if elsewhere, err = s.countElsewhere(ctx, registry); err != nil {
			return 0, err
		}
	}
	r, err := s.run(ctx, following("register_name", path), registry, s.now(), name, limit, above, elsewhere)
	if err != nil {
		return 0, err
	}
	if r.status == string(semantics.QuotaExceeded) {
		return 0, semantics.TooManyEntities(limit)
	}
	return r.number(), r.failure()
}

// countElsewhere returns how many names the other registries have. Entities that are created at the same time in
// different registries do not see each other, so a few may be above the quota.
func (s *Store) countElsewhere(ctx context.Context, here *registry) (int64, error) {
	sum := int64(0)
	for _, registry := range s.registries {
		if registry == here {
			continue
		}
		count := redis.NewIntCmd(ctx, "zcard", registry.key("names"))
		if err := s.redis(ctx).Process(ctx, count); err != nil {
			return 0, storeError(err, false)
		}
		sum += count.Val()
	}
	return sum, nil
}

// unregisterDeleted removes the name of an entity from the list after the script of this reply deleted it. It does not
// end with ctx. After a crash, or if the list cannot be reached, the name stays; lists skip it, and forgetName removes
// it.
func (s *Store) unregisterDeleted(ctx context.Context, path string, r *reply) error {
	barred := r.number()
	if err := r.failure(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmTimeout)
	defer cancel()
	return mayHaveRun(s.unregisterName(ctx, path, barred)) // or Redis has forgotten the deletion
}

func (s *Store) unregisterName(ctx context.Context, path string, barred int64) error {
	_, err := s.run(ctx, "unregister_name", s.registryOf(semantics.Fold(path)), semantics.Fold(path), barred)
	return err
}

// notThere returns the error of a deletion that found no entity, and removes what an earlier deletion left.
func (s *Store) notThere(ctx context.Context, kind semantics.Kind, path string) error {
	if kind != semantics.SubscriptionKind {
		if err := s.forgetName(ctx, path); err != nil {
			return err
		}
		if err := s.deleteLeftPartitions(ctx, path, 0); err != nil {
			return err
		}
	}
	return semantics.NotFound(path)
}

// forgetName removes a name without an entity from the list, with what is left of the entity. A caller that is creating
// the entity registers the name again.
func (s *Store) forgetName(ctx context.Context, path string) error {
	return s.Unbroken(ctx, func(ctx context.Context) error { return s.forgetNow(ctx, path) })
}

func (s *Store) forgetNow(ctx context.Context, path string) error {
	if err := s.deleteLeft(ctx, path); err != nil {
		return err
	}
	r, err := s.run(ctx, "ticket", s.registryOf(semantics.Fold(path)), semantics.Fold(path))
	if err != nil {
		return err
	}
	ticket := r.number()
	if err := r.failure(); err != nil || ticket == 0 {
		return err
	}
	if r, err = s.run(ctx, "bar_name", s.keys(path), ticket); err != nil || r.status != "OK" {
		return err
	}
	return s.unregisterName(ctx, path, ticket)
}

// listNames returns up to limit names of the namespace, in order.
func (s *Store) listNames(ctx context.Context, after string, limit int) ([]string, error) {
	var names []string
	for _, registry := range s.registries {
		some, err := s.listNamesIn(ctx, registry, after, limit)
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	if len(s.registries) > 1 {
		slices.Sort(names)
	}
	return names[:min(limit, len(names))], nil
}

// listNamesIn returns up to limit names of a registry, in order.
func (s *Store) listNamesIn(ctx context.Context, registry *registry, after string, limit int) ([]string, error) {
	r, err := s.run(ctx, "list_names", registry, after, limit)
	if err != nil {
		return nil, err
	}
	list := r.list()
	var names []string
	for list.more() {
		names = append(names, list.text())
	}
	return names, list.failure()
}
