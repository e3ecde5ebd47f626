package semantics

import (
	"context"
	"slices"
	"strings"
)

// destinationOptions are the options that name where messages are forwarded to.
var destinationOptions = []string{"forwardTo", "forwardDeadLetteredMessagesTo", "unmatchedTo"}

// parseDestinations checks the paths that the named options hold, as far as that needs no entity, and gives them as ParsePath does.
func (o Options) parseDestinations(names []string) (Options, error) {
	for _, field := range destinationOptions {
		path := o.option(field).(*string)
		if *path == "" || !slices.Contains(names, field) {
			continue
		}
		given := strings.ReplaceAll(*path, `\`, "/")
		if topic, _, ok := SplitSubscription(given); ok {
			return o, badDestination(field, "must not be a subscription; forward to a queue or to the topic %q", cut(topic))
		}
		parsed, err := ParsePath(given)
		if err != nil {
			return o, fieldError(InvalidArgument, field, "is no path of a queue or topic: %s", AsError(err).Message)
		}
		*path = parsed
	}
	return o, nil
}

// checkForwarding checks where an entity would forward to that has these options, of which the named ones are set now (ENT-13), and gives
// the options and names with what follows from that (ENT-14).
func (b *Broker) checkForwarding(ctx context.Context, path string, options Options, names []string) (Options, []string, error) {
	if options.ForwardTo != "" && options.RequiresSession {
		return options, nil, badDestination("forwardTo", "must be empty where requiresSession is set: sessions cannot be forwarded").
			With(DetailEntity, path)
	}
	for _, field := range destinationOptions {
		if to := *options.option(field).(*string); to != "" && slices.Contains(names, field) {
			if err := b.checkDestination(ctx, path, field, to); err != nil {
				return options, nil, err
			}
		}
	}
	if options.ForwardTo != "" && options.AutoDeleteOnIdle != Never {
		options.AutoDeleteOnIdle = Never
		names = append(slices.Clone(names), "autoDeleteOnIdle")
	}
	return options, names, nil
}

func (b *Broker) checkDestination(ctx context.Context, path, field, to string) error {
	if Fold(to) == Fold(path) {
		return badDestination(field, "must not be the entity itself").With(DetailEntity, path)
	}
	found, err := b.store.Destination(ctx, to)
	if err != nil {
		return err
	}
	if found.Incarnation != 0 {
		return nil
	}
	hint := "create it first"
	for _, prefix := range []string{"queues/", "topics/"} {
		name, has := strings.CutPrefix(to, prefix)
		if !has {
			continue
		}
		if meant, err := b.store.Destination(ctx, name); err == nil && meant.Incarnation != 0 {
			hint = "leave " + prefix + " out"
		}
	}
	return badDestination(field, "is %q, and there is no such queue or topic; %s", cut(to), hint).With(DetailEntity, path)
}

func badDestination(field, format string, args ...any) *Error {
	return fieldError(ForwardDestinationInvalid, field, format, args...)
}

// checkUpdate checks what an update of the named options makes of the present ones, where that matters for forwarding.
func (b *Broker) checkUpdate(ctx context.Context, kind Kind, path string, options Options, names []string) (Options, []string, error) {
	matters := func(name string) bool { return name == "autoDeleteOnIdle" || slices.Contains(destinationOptions, name) }
	if !slices.ContainsFunc(names, matters) {
		return options, names, nil
	}
	present, err := b.store.GetEntity(ctx, kind, path)
	if err != nil {
		return options, nil, err
	}
	merged, err := present.Options.Merge(options, names)
	if err != nil {
		return options, nil, err
	}
	merged.RequiresSession = present.Options.RequiresSession                   // the store says that it cannot be changed
	changed := slices.DeleteFunc(slices.Clone(names), func(name string) bool { // a destination that stays may be gone by now
		return len(present.Options.Differences(merged, []string{name})) == 0
	})
	checked, added, err := b.checkForwarding(ctx, path, merged, changed)
	if err != nil {
		return options, nil, err
	}
	options.AutoDeleteOnIdle = checked.AutoDeleteOnIdle
	return options, append(slices.Clone(names), added[len(changed):]...), nil
}
