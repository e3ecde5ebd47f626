package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// A topic with several partitions has its subscriptions and rules in its definition, a topic of the store below to
// which nothing is sent (PART-8). Every change of them is made there, in one step, and decides. Each partition has the
// same subscriptions, without rules, and the version of the routes by which copies are put into it: see level.go.

// onDefinition runs a call about the subscriptions of a topic. path is that of the topic or of a subscription.
func (s *Store) onDefinition(
	ctx context.Context, path string, one func() error, several func(w *whole) error,
) error {
	topic := path
	if of, _, is := semantics.SplitSubscription(path); is {
		topic = of
	}
	var missing error // what the definition does not have, while it is there
	err := s.on(ctx, topic, one, func(w *whole) error {
		missing = nil
		if w.definition == "" { // a queue has no subscriptions
			return supposed{semantics.NotFound(path)}
		}
		err := several(w)
		if semantics.CodeOf(err) != semantics.EntityNotFound {
			return err
		}
		if _, failed := s.Store.GetEntity(ctx, semantics.TopicKind, w.definition); failed != nil {
			return failed
		}
		missing = named(err)
		return nil
	})
	if err == nil {
		err = missing
	}
	return err
}

// defines runs a change of the definition of a topic, and lets all partitions follow it. They do so even if nothing was
// to be changed: then an earlier call may have failed before they did.
func (s *Store) defines(ctx context.Context, w *whole, change func() error) error {
	changed := change()
	switch semantics.CodeOf(changed) {
	case "", semantics.RuleAlreadyExists, semantics.RuleNotFound:
	case semantics.EntityNotFound: // if it is the definition itself, it is created, and the call run again
		if _, err := s.Store.GetEntity(ctx, semantics.TopicKind, w.definition); err != nil {
			return err
		}
	default:
		return changed
	}
	err := s.follow(context.WithoutCancel(ctx), w)
	switch {
	case changed != nil && semantics.CodeOf(err) == semantics.EntityNotFound:
		return changed
	case err != nil:
		return mayHaveRun(err)
	default:
		return changed
	}
}

// follow lets all partitions of a topic follow its definition, and creates those that are missing.
func (s *Store) follow(ctx context.Context, w *whole) error {
	err := s.levelAll(ctx, w)
	if semantics.CodeOf(err) != semantics.EntityNotFound {
		return err
	}
	now, _, failed := s.look(ctx, w.name, w)
	switch {
	case failed != nil:
		return failed
	case now != w: // it was deleted
		return err
	default:
		return s.levelAll(ctx, w)
	}
}

// inTopic returns a subscription as clients know it.
func inTopic(entity semantics.Entity) semantics.Entity {
	entity.Name, entity.Incarnation = semantics.WholePath(entity.Name), 0
	return entity
}

// CreateSubscription implements semantics.Entities.
func (s *Store) CreateSubscription(
	ctx context.Context, path string, options semantics.Options, rules []semantics.Rule,
) (entity semantics.Entity, created bool, err error) {
	_, name, _ := semantics.SplitSubscription(path)
	err = s.onDefinition(ctx, path, func() error {
		entity, created, err = s.Store.CreateSubscription(ctx, path, options, rules)
		return err
	}, func(w *whole) error {
		if err := w.checkSubscription(path, options); err != nil {
			return err
		}
		return s.defines(ctx, w, func() error {
			entity, created, err = s.Store.CreateSubscription(ctx, w.defined(name), options, rules)
			entity = inTopic(entity)
			return err
		})
	})
	return entity, created, err
}

// checkSubscription refuses options that a subscription of a topic cannot have.
func (w *whole) checkSubscription(path string, options semantics.Options) error {
	options.Partitions = int64(len(w.paths))
	return options.CheckPartitions(semantics.SubscriptionKind, path)
}

// shareOf returns the options of an entity in each of its partitions.
func (w *whole) shareOf(options semantics.Options) semantics.Options {
	options.Partitions = int64(len(w.paths))
	return shareOf(options)
}

// GetEntity implements semantics.Entities. What upkeep is called for, a partition or something in one, has the name of
// its entity.
func (s *Store) GetEntity(
	ctx context.Context, kind semantics.Kind, path string,
) (entity semantics.Entity, err error) {
	_, name, is := semantics.SplitSubscription(path)
	if !is || semantics.IsPartition(path) {
		entity, err = s.Store.GetEntity(ctx, kind, path)
		entity.Name = semantics.WholePath(entity.Name)
		return entity, named(err)
	}
	err = s.onDefinition(ctx, path, func() error {
		entity, err = s.Store.GetEntity(ctx, kind, path)
		return err
	}, func(w *whole) error {
		entity, err = s.Store.GetEntity(ctx, kind, w.defined(name))
		entity = inTopic(entity)
		return err
	})
	return entity, err
}

func (s *Store) updateSubscription(
	ctx context.Context, path string, options semantics.Options, names []string,
) (entity semantics.Entity, err error) {
	_, name, _ := semantics.SplitSubscription(path)
	err = s.onDefinition(ctx, path, func() error {
		entity, err = s.Store.UpdateEntity(ctx, semantics.SubscriptionKind, path, options, names)
		return err
	}, func(w *whole) error {
		wanted, err := semantics.DefaultOptions().Merge(options, names)
		if err == nil {
			err = w.checkSubscription(path, wanted)
		}
		if err != nil {
			return err
		}
		return s.defines(ctx, w, func() error {
			defined, err := s.Store.UpdateEntity(ctx, semantics.SubscriptionKind, w.defined(name), options, names)
			if err != nil {
				return err
			}
			entity = inTopic(defined)
			sub := w.subscription(defined)
			return s.updatePartitions(ctx, sub, sub.all(), sub.shareOf(defined.Options), names)
		})
	})
	return entity, err
}

func (s *Store) deleteSubscription(ctx context.Context, path string) error {
	_, name, _ := semantics.SplitSubscription(path)
	return s.onDefinition(ctx, path, func() error {
		return s.Store.DeleteEntity(ctx, semantics.SubscriptionKind, path)
	}, func(w *whole) error {
		err := s.defines(ctx, w, func() error { return s.undefine(ctx, w, name) })
		s.forget(ctx, path)
		return err
	})
}

// undefine deletes a subscription in the definition, and then in all partitions. The note lets others delete there what
// this call does not reach. A subscription of that name that was created meanwhile stays: no note says that it is gone.
func (s *Store) undefine(ctx context.Context, w *whole, name string) error {
	entity, err := s.Store.GetEntity(ctx, semantics.SubscriptionKind, w.defined(name))
	if err != nil {
		return err
	}
	if err := s.below.NoteDeletion(ctx, w.definition, entity.Incarnation); err != nil {
		return err
	}
	if err := s.below.DeleteRecord(ctx, entity.Kind, w.defined(name), entity.Incarnation); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	sub := w.subscription(entity)
	return mayHaveRun(named(sub.withEach(func(p int) error {
		return unlessGone(s.Store.DeleteEntity(ctx, sub.kind, sub.paths[p]))
	})))
}

// ListEntities implements semantics.Entities.
func (s *Store) ListEntities(
	ctx context.Context, kind semantics.Kind, topic, after string, limit int,
) (entities []semantics.Entity, more bool, err error) {
	if kind != semantics.SubscriptionKind {
		return s.Store.ListEntities(ctx, kind, topic, after, limit)
	}
	err = s.onDefinition(ctx, topic, func() error {
		entities, more, err = s.Store.ListEntities(ctx, kind, topic, after, limit)
		return err
	}, func(w *whole) error {
		entities, more, err = s.Store.ListEntities(ctx, kind, w.definition, after, limit)
		for i := range entities {
			entities[i] = inTopic(entities[i])
		}
		return err
	})
	return entities, more, err
}

// CreateRule implements semantics.Topics.
func (s *Store) CreateRule(
	ctx context.Context, subscription string, rule semantics.Rule,
) (created semantics.Rule, err error) {
	return s.putRule(ctx, subscription, rule, s.Store.CreateRule)
}

// ReplaceRule implements semantics.Topics.
func (s *Store) ReplaceRule(
	ctx context.Context, subscription string, rule semantics.Rule,
) (replaced semantics.Rule, err error) {
	return s.putRule(ctx, subscription, rule, s.Store.ReplaceRule)
}

// putRule creates or replaces a rule where the subscription is defined.
func (s *Store) putRule(
	ctx context.Context, subscription string, rule semantics.Rule,
	put func(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error),
) (done semantics.Rule, err error) {
	_, name, _ := semantics.SplitSubscription(subscription)
	err = s.onDefinition(ctx, subscription, func() error {
		done, err = put(ctx, subscription, rule)
		return err
	}, func(w *whole) error {
		return s.defines(ctx, w, func() error {
			done, err = put(ctx, w.defined(name), rule)
			return err
		})
	})
	return done, err
}

// DeleteRule implements semantics.Topics.
func (s *Store) DeleteRule(ctx context.Context, subscription, rule string) error {
	_, name, _ := semantics.SplitSubscription(subscription)
	return s.onDefinition(ctx, subscription, func() error {
		return s.Store.DeleteRule(ctx, subscription, rule)
	}, func(w *whole) error {
		return s.defines(ctx, w, func() error { return s.Store.DeleteRule(ctx, w.defined(name), rule) })
	})
}

// GetRule implements semantics.Topics.
func (s *Store) GetRule(ctx context.Context, subscription, rule string) (found semantics.Rule, err error) {
	_, name, _ := semantics.SplitSubscription(subscription)
	err = s.onDefinition(ctx, subscription, func() error {
		found, err = s.Store.GetRule(ctx, subscription, rule)
		return err
	}, func(w *whole) error {
		found, err = s.Store.GetRule(ctx, w.defined(name), rule)
		return err
	})
	return found, err
}

// ListRules implements semantics.Topics.
func (s *Store) ListRules(
	ctx context.Context, subscription, after string, limit int,
) (rules []semantics.Rule, more bool, err error) {
	_, name, _ := semantics.SplitSubscription(subscription)
	err = s.onDefinition(ctx, subscription, func() error {
		rules, more, err = s.Store.ListRules(ctx, subscription, after, limit)
		return err
	}, func(w *whole) error {
		rules, more, err = s.Store.ListRules(ctx, w.defined(name), after, limit)
		return err
	})
	return rules, more, err
}

// Routes implements semantics.Topics. They name the subscriptions as each partition has them.
func (s *Store) Routes(ctx context.Context, topic string) (routes semantics.Routes, err error) {
	err = s.on(ctx, topic, func() error {
		routes, err = s.Store.Routes(ctx, topic)
		return err
	}, func(w *whole) error {
		if w.definition == "" {
			return semantics.NotFound(topic)
		}
		routes, err = s.Store.Routes(ctx, w.definition)
		for i := range routes.Subscriptions {
			route := &routes.Subscriptions[i]
			route.Subscription = semantics.NameInPartition(route.Subscription, route.Incarnation)
		}
		return err
	})
	return routes, err
}
