package dapr

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// optionsOf returns the options with which an entity is created, and the names of those that are set.
func optionsOf(s settings, kind semantics.Kind) (semantics.Options, []string) {
	options := s.options
	given := append(slices.Clone(s.given), "maxMessageSizeInKilobytes", "requiresSession")
	options.MaxMessageSizeInKilobytes, options.RequiresSession = maxMessageKilobytes, s.requireSessions
	has := semantics.OptionNames(kind)
	return options, slices.DeleteFunc(given, func(name string) bool { return !slices.Contains(has, name) })
}

// ensureTarget creates the queue or topic of a publish if it is missing. It does not change an existing one.
func (c *component) ensureTarget(ctx context.Context, s settings, path string) error {
	options, given := optionsOf(s, s.kind)
	if s.kind == semantics.TopicKind { // these are options of its subscriptions
		given = slices.DeleteFunc(given, func(name string) bool {
			return name == "defaultMessageTimeToLive" || name == "autoDeleteOnIdle"
		})
	}
	_, err := c.broker.EnsureEntity(ctx, s.kind, path, options, given)
	return err
}

// ensureSource creates what a subscription receives from: a queue, or a topic and its subscription. It leaves out the
// topic if the caller may create the subscription only.
func (c *component) ensureSource(ctx context.Context, s settings, path string) ([]semantics.Difference, error) {
	kind := semantics.QueueKind
	if topic, _, isSubscription := semantics.SplitSubscription(path); isSubscription {
		kind = semantics.SubscriptionKind
		s.kind = semantics.TopicKind
		if mayCreate(ctx, topic) {
			if err := c.ensureTarget(ctx, s, topic); err != nil {
				return nil, err
			}
		}
	}
	options, given := optionsOf(s, kind)
	ensured, err := c.broker.EnsureEntity(ctx, kind, path, options, given)
	return ensured.Differences, err
}
