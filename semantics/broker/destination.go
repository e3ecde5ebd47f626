package broker

import (
	"context"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// checkForwarding checks where an entity would forward to that has these options, of which the named ones are set now
// (ENT-13), and returns the options and names with what follows from that (ENT-14).
func (b *Broker) checkForwarding(
	ctx context.Context, path string, options semantics.Options, names []string,
) (semantics.Options, []string, error) {
	if options.ForwardTo != "" && options.RequiresSession {
		return options, nil, semantics.BadDestination("forwardTo",
			"must be empty where requiresSession is set: sessions cannot be forwarded").
			With(semantics.DetailEntity, path)
	}
	for _, field := range semantics.DestinationOptions() {
		if to := options.Destination(field); to != "" && slices.Contains(names, field) {
			if err := b.checkDestination(ctx, path, field, to); err != nil {
				return options, nil, err
			}
		}
	}
	if options.ForwardTo != "" && options.AutoDeleteOnIdle != semantics.Never {
		options.AutoDeleteOnIdle = semantics.Never
		names = append(slices.Clone(names), "autoDeleteOnIdle")
	}
	return options, names, nil
}

func (b *Broker) checkDestination(ctx context.Context, path, field, to string) error {
	if semantics.Fold(to) == semantics.Fold(path) {
		return semantics.BadDestination(field, "must not be the entity itself").With(semantics.DetailEntity, path)
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
	return semantics.BadDestination(field, "is %q, and there is no such queue or topic; %s", semantics.Shorten(to),
		hint).
		With(semantics.DetailEntity, path)
}

// checkUpdate checks what an update of the named options makes of the present ones, where that matters for forwarding.
func (b *Broker) checkUpdate(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Options, []string, error) {
	matters := func(name string) bool {
		return name == "autoDeleteOnIdle" || slices.Contains(semantics.DestinationOptions(), name)
	}
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
	merged.RequiresSession = present.Options.RequiresSession // the store says that it cannot be changed
	changed := slices.DeleteFunc(
		slices.Clone(names),
		func(name string) bool { // a destination that stays may be gone by now
			return len(present.Options.Differences(merged, []string{name})) == 0
		},
	)
	checked, added, err := b.checkForwarding(ctx, path, merged, changed)
	if err != nil {
		return options, nil, err
	}
	options.AutoDeleteOnIdle = checked.AutoDeleteOnIdle
	return options, append(slices.Clone(names), added[len(changed):]...), nil
}
