package redisstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// The list of the names of a namespace and its entities lie in different slots, so no script changes both. A name is
// put on the list before its entity is created and removed after it was deleted. If the two race, the ticket of the
// name decides: see lua/register_name.lua.

// registerName puts a name on the list and returns its ticket, which is higher than above.
func (s *Store) registerName(ctx context.Context, path string, above int64) (ticket int64, err error) {
	return s.listName(ctx, path, s.options.MaxEntities, above)
}

func (s *Store) listName(ctx context.Context, path string, limit, above int64) (ticket int64, err error) {
	r, err := s.run(ctx, "register_name", s.names, s.now(), semantics.Fold(path), limit, above)
	if err != nil {
		return 0, err
	}
	if r.status == string(semantics.QuotaExceeded) {
		return 0, semantics.TooManyEntities(limit)
	}
	return r.number(), r.failure()
}

// unregisterDeleted removes the name of an entity from the list after the script of this reply deleted it. It does not
// end with ctx. After a crash the name stays; lists skip it, and forgetName removes it.
func (s *Store) unregisterDeleted(ctx context.Context, path string, r *reply) error {
	barred := r.number()
	if err := r.failure(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmTimeout)
	defer cancel()
	return s.unregisterName(ctx, path, barred)
}

func (s *Store) unregisterName(ctx context.Context, path string, barred int64) error {
	_, err := s.run(ctx, "unregister_name", s.names, semantics.Fold(path), barred)
	return err
}

// notThere returns the error of a deletion that found no entity, and removes what an earlier deletion left.
func (s *Store) notThere(ctx context.Context, kind semantics.Kind, path string) error {
	if kind != semantics.SubscriptionKind {
		if err := s.forgetName(ctx, path); err != nil {
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
	r, err := s.run(ctx, "ticket", s.names, semantics.Fold(path))
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

// listNames returns up to limit names of the namespace's list, in order.
func (s *Store) listNames(ctx context.Context, after string, limit int) ([]string, error) {
	r, err := s.run(ctx, "list_names", s.names, after, limit)
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
