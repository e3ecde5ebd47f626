package dapr

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// optionsOf gives the options of an entity of a kind that is made, and which of them differ from the defaults.
func optionsOf(s settings, kind semantics.Kind) (semantics.Options, []string) {
	options := s.options
	given := append(slices.Clone(s.given), "maxMessageSizeInKilobytes", "requiresSession")
	options.MaxMessageSizeInKilobytes, options.RequiresSession = maxMessageKilobytes, s.requireSessions
	has := semantics.OptionNames(kind)
	return options, slices.DeleteFunc(given, func(name string) bool { return !slices.Contains(has, name) })
}

// ensureTarget makes the queue or topic that is published to. One that is there stays as it is.
func (c *component) ensureTarget(ctx context.Context, s settings, path string) error {
	options, given := optionsOf(s, s.kind)
	if s.kind == semantics.TopicKind { // these are for its subscriptions, where they can differ
		given = slices.DeleteFunc(
			given,
			func(name string) bool { return name == "defaultMessageTimeToLive" || name == "autoDeleteOnIdle" },
		)
	}
	_, err := c.broker.EnsureEntity(ctx, s.kind, path, options, given)
	return err
}

// ensureSource makes what a subscription receives from: a queue, or a topic and a subscription of it.
func (c *component) ensureSource(ctx context.Context, s settings, path string) ([]semantics.Difference, error) {
	kind := semantics.QueueKind
	if topic, _, isSubscription := semantics.SplitSubscription(path); isSubscription {
		kind = semantics.SubscriptionKind
		s.kind = semantics.TopicKind
		if err := c.ensureTarget(ctx, s, topic); err != nil {
			return nil, err
		}
	}
	options, given := optionsOf(s, kind)
	ensured, err := c.broker.EnsureEntity(ctx, kind, path, options, given)
	return ensured.Differences, err
}
