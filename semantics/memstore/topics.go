package memstore

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// newVersion returns a version of routes. It is random, so that it is none that an earlier topic of the name had, and
// none that a partition has from its topic.
func newVersion() int64 {
	random := semantics.NewRandomUUID()
	return int64(binary.BigEndian.Uint64(random[:8]) >> 12)
}

// routesChanged notes on a subscription that something which decides about copies is not as it was. A queue has nothing
// of the kind.
func (q *queue) routesChanged() {
	if q.topic != nil {
		q.topic.routesVersion = newVersion()
	}
}

// CreateSubscription implements semantics.Entities.
func (s *Store) CreateSubscription(
	ctx context.Context, path string, options semantics.Options, rules []semantics.Rule,
) (semantics.Entity, bool, error) {
	topic, name, _ := semantics.SplitSubscription(path)
	t, now, unlock, err := s.openKind(ctx, semantics.TopicKind, topic)
	defer unlock()
	if err != nil {
		return semantics.Entity{}, false, err
	}
	if sub := t.subscriptions[semantics.Fold(name)]; sub != nil {
		return sub.view(), false, nil
	}
	if err := options.MemoryOnly(); err != nil {
		return semantics.Entity{}, false, err
	}
	if n, limit := t.countSubscriptions(), s.ofTopic.subscriptions; n >= limit {
		return semantics.Entity{}, false, semantics.TooManyInTopic(t.name, "subscriptions", int64(limit))
	}
	if err := s.checkRules(t, rules...); err != nil {
		return semantics.Entity{}, false, err
	}
	sub := s.addSubscription(t, name, path, options)
	for _, rule := range rules {
		sub.addRule(rule, now)
	}
	sub.routesChanged()
	t.used(now) // IDLE-3
	s.sweepForUnused(sub)
	return sub.view(), true, nil
}

func (s *Store) addSubscription(t *queue, name, path string, options semantics.Options) *queue {
	sub := s.add(newQueue(semantics.SubscriptionKind, path, options, s.now()))
	sub.topic, sub.rules = t, map[string]semantics.Rule{}
	t.subscriptions[semantics.Fold(name)] = sub
	return sub
}

// keepUnmatched creates the subscription of a topic with UnmatchedTo that forwards there (TOPIC-3). If UnmatchedTo is
// unset later, the subscription stays to forward what it has.
func (s *Store) keepUnmatched(t *queue) {
	if t.options.UnmatchedTo == "" || t.options.Partitions > 1 { // of several partitions each has its own
		return
	}
	sub := t.subscriptions[semantics.UnmatchedSubscription]
	if sub == nil {
		path := semantics.SubscriptionPath(t.name, semantics.UnmatchedSubscription)
		sub = s.addSubscription(t, semantics.UnmatchedSubscription, path, semantics.DefaultOptions())
	}
	sub.options.ForwardTo = t.options.UnmatchedTo
}

// countSubscriptions is how many a topic has that can be seen.
func (q *queue) countSubscriptions() int {
	if q.subscriptions[semantics.UnmatchedSubscription] != nil {
		return len(q.subscriptions) - 1
	}
	return len(q.subscriptions)
}

// checkRules checks that a topic may have so many rules more (RULE-4).
func (s *Store) checkRules(t *queue, rules ...semantics.Rule) error {
	sql, correlations := countFilters(slices.Values(rules))
	hasSQL, hasCorrelations := 0, 0
	for _, sub := range t.subscriptions {
		n, m := countFilters(maps.Values(sub.rules))
		hasSQL, hasCorrelations = hasSQL+n, hasCorrelations+m
	}
	switch {
	case hasSQL+sql > s.ofTopic.sqlFilters:
		return semantics.TooManyInTopic(t.name, "SQL filters", int64(s.ofTopic.sqlFilters))
	case hasCorrelations+correlations > s.ofTopic.correlationFilters:
		return semantics.TooManyInTopic(t.name, "correlation filters", int64(s.ofTopic.correlationFilters))
	default:
		return nil
	}
}

// Routes implements semantics.Topics. Subscriptions and rules stand in order of their folded names.
func (s *Store) Routes(ctx context.Context, topic string) (semantics.Routes, error) {
	return s.routes(ctx, topic, true)
}

// Roster implements semantics.Topics.
func (s *Store) Roster(ctx context.Context, topic string) (semantics.Routes, error) {
	return s.routes(ctx, topic, false)
}

// SetVersion implements semantics.Topics.
func (s *Store) SetVersion(ctx context.Context, topic string, from, to int64) error {
	t, _, unlock, err := s.openRoutes(ctx, topic, from)
	defer unlock()
	if err == nil {
		t.routesVersion = to
	}
	return err
}

// Level implements semantics.Topics.
func (*Store) Level(context.Context, string) error { return nil }

func (s *Store) routes(ctx context.Context, topic string, withRules bool) (semantics.Routes, error) {
	t, _, unlock, err := s.openKind(ctx, semantics.TopicKind, topic)
	defer unlock()
	if err != nil {
		return semantics.Routes{}, err
	}
	routes := semantics.Routes{Version: t.routesVersion, KeepsUnmatched: t.options.UnmatchedTo != ""}
	for _, name := range slices.Sorted(maps.Keys(t.subscriptions)) {
		if name == semantics.UnmatchedSubscription {
			continue
		}
		sub := t.subscriptions[name]
		route := semantics.Route{
			Subscription: name, RequiresSession: sub.options.RequiresSession,
			DeadLettersFailures: sub.options.DeadLetteringOnFilterEvaluationExceptions,
			Incarnation:         sub.view().Incarnation,
		}
		for _, rule := range slices.Sorted(maps.Keys(sub.rules)) {
			if withRules {
				route.Rules = append(route.Rules, cloneRule(sub.rules[rule]))
			}
		}
		routes.Subscriptions = append(routes.Subscriptions, route)
	}
	return routes, nil
}

// openRoutes is openKind for what was decided by one version of a topic's routes.
func (s *Store) openRoutes(ctx context.Context, topic string, version int64) (*queue, time.Time, func(), error) {
	t, now, unlock, err := s.openKind(ctx, semantics.TopicKind, topic)
	if err == nil && t.routesVersion != version {
		err = semantics.ErrRoutesChanged
	}
	return t, now, unlock, err
}
