package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// TopicLimits bound what a topic may have (RULE-4). Zero means the bound of the specification.
type TopicLimits struct {
	Subscriptions, SQLFilters, CorrelationFilters int

	Sums int // topics and subscriptions that one transaction adds up (TX-3)
}

func (l TopicLimits) subscriptions() int {
	return or(l.Subscriptions, semantics.MaxSubscriptionsPerTopic)
}

func (l TopicLimits) sums() int { return or(l.Sums, semantics.MaxTransactionSums) }

func (l TopicLimits) sqlFilters() int { return or(l.SQLFilters, semantics.MaxSQLFiltersPerTopic) }

func (l TopicLimits) correlationFilters() int {
	return or(l.CorrelationFilters, semantics.MaxCorrelationFiltersPerTopic)
}

// over returns the error of a topic that would have more than it may.
func (l TopicLimits) over(topic string, r *reply) error {
	words := map[string]string{
		"subscriptions":       "subscriptions",
		"sql_filters":         "SQL filters",
		"correlation_filters": "correlation filters",
	}
	what, limit := words[r.text()], r.number()
	if err := r.failure(); err != nil {
		return err
	}
	return semantics.TooManyInTopic(topic, what, limit)
}

// CreateSubscription implements semantics.Entities.
func (s *Store) CreateSubscription(
	ctx context.Context, path string, options semantics.Options, rules []semantics.Rule,
) (semantics.Entity, bool, error) {
	if err := s.refuseNewLevel(ctx, path, options); err != nil {
		return semantics.Entity{}, false, err
	}
	topic, name, _ := semantics.SplitSubscription(path)
	limits := s.options.TopicLimits
	fields := appendOptions(
		[]any{"name", path, "incarnation", newMark()}, options, semantics.OptionNames(semantics.SubscriptionKind),
	)
	if semantics.IsPartition(path) {
		fields = append(fields, "in_partition", 1)
	}
	args := append([]any{
		s.now(), semantics.Fold(name), limits.subscriptions(), limits.sqlFilters(), limits.correlationFilters(),
		newMark(), len(fields),
	}, fields...)
	for _, rule := range rules {
		blob, err := encodeRule(rule)
		if err != nil {
			return semantics.Entity{}, false, err
		}
		args = append(args, semantics.Fold(rule.Name), ruleLetter(rule), blob)
	}
	r, err := s.run(ctx, following("create_subscription", path), s.keys(path), args...)
	if err != nil {
		return semantics.Entity{}, false, err
	}
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return semantics.Entity{}, false, semantics.NotFound(topic)
	case semantics.QuotaExceeded:
		return semantics.Entity{}, false, limits.over(topic, r)
	default: // OK, ENTITY_ALREADY_EXISTS
		entity, err := readEntity(r)
		if err == nil && r.status == "OK" {
			s.alarmUnused(ctx, entity)
		}
		return entity, r.status == "OK", err
	}
}

// roster is which subscriptions a topic has, by one version of its routes.
type roster struct {
	version string
	names   []string // folded, in order
}

// visible returns those that are listed and counted.
func (r roster) visible() []string {
	return slices.DeleteFunc(
		slices.Clone(r.names),
		func(name string) bool { return name == semantics.UnmatchedSubscription },
	)
}

// errHalfDeleted means that a topic is deleted, but not yet all that its subscriptions held.
var errHalfDeleted = errors.New("the topic is half deleted")

// rosterOf reads which subscriptions a topic has, or still had when it was deleted: then the error is errHalfDeleted.
func (s *Store) rosterOf(ctx context.Context, topic string) (roster, error) {
	r, err := s.run(ctx, "list_subscriptions", s.keys(topic))
	if err != nil {
		return roster{}, err
	}
	var found roster
	switch r.status {
	case "OK":
		found.version = r.text()
	case "HALF_DELETED":
		err = errHalfDeleted
	default:
		return roster{}, semantics.NotFound(topic)
	}
	for r.more() {
		found.names = append(found.names, r.text())
	}
	slices.Sort(found.names)
	if failure := r.failure(); failure != nil {
		return roster{}, failure
	}
	return found, err
}

// presentRoster is rosterOf for a topic that must exist.
func (s *Store) presentRoster(ctx context.Context, topic string) (roster, error) {
	found, err := s.rosterOf(ctx, topic)
	if errors.Is(err, errHalfDeleted) {
		err = semantics.NotFound(topic)
	}
	return found, err
}

// entities returns the key of the entity of a topic and those of all its subscriptions.
func (s *Store) entities(topic string, names []string) []string {
	keys := make([]string, 0, 1+len(names))
	keys = append(keys, s.keys(topic).key("entity"))
	for _, name := range names {
		keys = append(keys, s.keys(semantics.SubscriptionPath(topic, name)).key("entity"))
	}
	return keys
}

func (s *Store) listSubscriptions(
	ctx context.Context, topic, after string, limit int,
) ([]semantics.Entity, bool, error) {
	found, err := s.presentRoster(ctx, topic)
	if err != nil {
		return nil, false, err
	}
	visible := found.visible()
	at, same := slices.BinarySearch(visible, after)
	if same {
		at++
	}
	names := visible[at:]
	more := len(names) > limit
	paths := make([]string, min(len(names), limit))
	for i := range paths {
		paths[i] = semantics.SubscriptionPath(topic, names[i])
	}
	entities, err := s.readEntities(ctx, paths)
	return entities, more, err
}

func (s *Store) topicRuntime(ctx context.Context, topic string) (semantics.Runtime, error) {
	for {
		found, err := s.presentRoster(ctx, topic)
		if err != nil {
			return semantics.Runtime{}, err
		}
		r, err := s.run(ctx, "topic_runtime", with(s.keys(topic), s.entities(topic, found.names)...), found.version)
		switch {
		case err != nil:
			return semantics.Runtime{}, err
		case r.status == "ROUTES_CHANGED":
			continue
		case r.status != "OK":
			return semantics.Runtime{}, semantics.NotFound(topic)
		}
		counts := semantics.Runtime{
			Scheduled: r.number(), SizeInBytes: r.number(), Subscriptions: int64(len(found.visible())),
			CreatedAt: r.instant(), UpdatedAt: r.instant(), AccessedAt: r.instant(), LastSequence: r.number(),
		}
		return counts, r.failure()
	}
}

// deleteTopic deletes in steps. After the first, no call finds the topic or a subscription, and until the last, its
// name cannot be used. If the sidecar crashes in between, the next creation of that name or a sweeper does the rest.
func (s *Store) deleteTopic(ctx context.Context, topic string, why deletion) error {
	for {
		found, err := s.presentRoster(ctx, topic)
		if semantics.CodeOf(err) == semantics.EntityNotFound {
			return s.notThere(ctx, semantics.TopicKind, topic)
		}
		if err != nil {
			return err
		}
		left, err := s.leftCopies(ctx, topic)
		if err != nil {
			return err
		}
		more := s.keys(topic).deletedTopic()
		for _, member := range left {
			more = append(more, s.keys(topic).leftBehind(member).key("left_chunks"))
		}
		more = append(more, s.entities(topic, found.names)[1:]...)
		if why == unused {
			for _, name := range found.names {
				more = append(more, s.keys(semantics.SubscriptionPath(topic, name)).group("keepers")...)
			}
		}
		r, err := s.run(
			ctx, "delete_topic", with(s.keys(topic), more...), s.now(), found.version, len(found.names),
			flag(why == unused),
		)
		switch {
		case err != nil:
			return err
		case r.status == "ROUTES_CHANGED":
			continue
		case r.status == "IN_USE":
			return stillInUse(r)
		case r.status != "OK":
			return s.notThere(ctx, semantics.TopicKind, topic)
		}
		s.reportRemoved(semantics.TopicKind, topic, why)
		if err := s.deleteSubscriptionsLeft(ctx, topic, found.names); err != nil {
			return mayHaveRun(err)
		}
		return s.unregisterDeleted(ctx, topic, r)
	}
}

// deleteLeft deletes what is left of a topic whose deletion did not end.
func (s *Store) deleteLeft(ctx context.Context, topic string) error {
	found, err := s.rosterOf(ctx, topic)
	if !errors.Is(err, errHalfDeleted) {
		if semantics.CodeOf(err) == semantics.EntityNotFound {
			return nil
		}
		return err
	}
	return s.deleteSubscriptionsLeft(ctx, topic, found.names)
}

func (s *Store) deleteSubscriptionsLeft(ctx context.Context, topic string, names []string) error {
	for _, name := range names {
		err := s.deleteSubscription(ctx, semantics.SubscriptionPath(topic, name), isLeft, "")
		if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound { // otherwise the topic was created again
			return err
		}
	}
	return nil
}

// deleteSubscription deletes a subscription, if it still has that incarnation; "" is any.
func (s *Store) deleteSubscription(ctx context.Context, path string, why deletion, incarnation any) error {
	topic, name, _ := semantics.SplitSubscription(path)
	mark := strconv.FormatInt(newMark(), 10)
	keys := s.keys(path).leftAs(mark)
	s.levels.forget(semantics.Fold(path))
	err := s.deleted(ctx, semantics.SubscriptionKind, path, why, "delete_subscription", with(keys, keys.deleted()...),
		s.now(), semantics.Fold(name), flag(why == isLeft), flag(why == unused), newMark(), mark,
		incarnation)
	if err == nil && why != isLeft {
		_ = s.releaseLeft(ctx, topic, releasesAtOnce) // otherwise the look at all entities does
	}
	return err
}
