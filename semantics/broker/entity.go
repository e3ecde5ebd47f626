package broker

import (
	"context"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// Ensured is the answer of EnsureEntity.
type Ensured struct {
	Entity      semantics.Entity
	Created     bool
	Differences []semantics.Difference // options asked for that the present entity has otherwise; nothing was changed
}

// EnsureEntity creates a queue or a topic if its name is free, in one atomic step (ENT-6). given names the options the
// caller set, the others get their defaults. An existing one stays as it is and the result has the differences. A
// subscription gets the rules, or the default rule when there are none (RULE-1); a queue or a topic has none. With
// ForwardTo it is never deleted for being idle, whatever was asked for (ENT-14). INVALID_ARGUMENT,
// ARGUMENT_OUT_OF_RANGE, FORWARD_DESTINATION_INVALID (ENT-13), QUOTA_EXCEEDED, FILTER_INVALID, ACTION_INVALID, and
// ENTITY_ALREADY_EXISTS when a queue has the name of the topic, or the other way round (ENT-2); ENTITY_NOT_FOUND for
// the topic of a subscription.
func (b *Broker) EnsureEntity(
	ctx context.Context, kind semantics.Kind, name string, options semantics.Options, given []string,
	rules ...semantics.Rule,
) (Ensured, error) {
	path, options, err := b.checkEntity(kind, name, options, given)
	if err != nil {
		return Ensured{}, err
	}
	if kind == semantics.SubscriptionKind {
		if rules, err = b.firstRules(rules); err != nil {
			return Ensured{}, err
		}
	}
	if err := b.admit(managementCost); err != nil {
		return Ensured{}, err
	}
	if options, _, err = b.checkForwarding(ctx, path, options, given); err != nil {
		return Ensured{}, err
	}
	var ensured Ensured
	if kind == semantics.SubscriptionKind {
		ensured.Entity, ensured.Created, err = b.store.CreateSubscription(ctx, path, options, rules)
	} else {
		ensured.Entity, ensured.Created, err = b.store.CreateEntity(ctx, kind, path, options)
	}
	switch {
	case err != nil:
		return Ensured{}, err
	case ensured.Entity.Kind != kind:
		return Ensured{}, semantics.Errorf(semantics.EntityAlreadyExists,
			"%s %q exists already, and queues and topics share their names; choose another name",
			ensured.Entity.Kind, ensured.Entity.Name).
			With(semantics.DetailEntity, ensured.Entity.Name)
	case !ensured.Created:
		ensured.Differences = ensured.Entity.Options.Differences(options, given)
	}
	return ensured, nil
}

// CreateEntity is EnsureEntity, but fails with ENTITY_ALREADY_EXISTS when the name is taken, even by an equal one
// (ENT-6).
func (b *Broker) CreateEntity(
	ctx context.Context, kind semantics.Kind, name string, options semantics.Options, given []string,
	rules ...semantics.Rule,
) (semantics.Entity, error) {
	ensured, err := b.EnsureEntity(ctx, kind, name, options, given, rules...)
	if err == nil && !ensured.Created {
		err = alreadyExists(ensured.Entity)
	}
	return ensured.Entity, err
}

func alreadyExists(present semantics.Entity) error {
	return semantics.Errorf(semantics.EntityAlreadyExists, "%s %q exists already; Ensure creates it only if it is absent",
		present.Kind, present.Name).
		With(semantics.DetailEntity, present.Name)
}

func (b *Broker) checkEntity(
	kind semantics.Kind, name string, options semantics.Options, given []string,
) (string, semantics.Options, error) {
	path, err := parseEntityPath(kind, name)
	if err != nil {
		return "", options, err
	}
	if err := semantics.CheckOptionNames(kind, given); err != nil {
		return "", options, err
	}
	options, err = semantics.DefaultOptions().Merge(options, given)
	if err != nil {
		return "", options, err
	}
	options = options.Partitioned(given)
	if options.RequiresSession {
		if err := b.refuseSessions(path); err != nil {
			return "", options, err
		}
	}
	if err := options.Validate(kind); err != nil {
		return "", options, err
	}
	options, err = options.ParseDestinations(given)
	return path, options, err
}

func parseEntityPath(kind semantics.Kind, name string) (string, error) {
	if kind != semantics.SubscriptionKind {
		return semantics.ParsePath(name)
	}
	path, err := semantics.ParseSourcePath(name)
	if _, _, ok := semantics.SplitSubscription(path); err == nil && !ok {
		err = semantics.InvalidField("name", "%q is not the path of a subscription", semantics.Shorten(name))
	}
	return path, err
}

// GetEntity reads an entity. INVALID_ARGUMENT, ENTITY_NOT_FOUND.
func (b *Broker) GetEntity(ctx context.Context, kind semantics.Kind, name string) (semantics.Entity, error) {
	path, err := parseEntityPath(kind, name)
	if err != nil {
		return semantics.Entity{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return semantics.Entity{}, err
	}
	return b.store.GetEntity(ctx, kind, path)
}

// UpdateEntity sets the named options and leaves the others alone (ENT-7, ENT-10), except for ENT-14 as in
// EnsureEntity. No names at all is INVALID_ARGUMENT. ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, PROPERTY_IMMUTABLE,
// FORWARD_DESTINATION_INVALID; nothing is changed on failure.
func (b *Broker) UpdateEntity(
	ctx context.Context, kind semantics.Kind, name string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	path, err := parseEntityPath(kind, name)
	if err != nil {
		return semantics.Entity{}, err
	}
	if len(names) == 0 {
		return semantics.Entity{}, semantics.InvalidField("updateMask", "must name at least one option")
	}
	if err := semantics.CheckOptionNames(kind, names); err != nil {
		return semantics.Entity{}, err
	}
	// Bounds hold option by option, so the defaults can stand in for the options that stay.
	checked, err := semantics.DefaultOptions().Merge(options, names)
	if err != nil {
		return semantics.Entity{}, err
	}
	if err := checked.Validate(kind); err != nil {
		return semantics.Entity{}, err
	}
	if options, err = options.ParseDestinations(names); err != nil {
		return semantics.Entity{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return semantics.Entity{}, err
	}
	if options, names, err = b.checkUpdate(ctx, kind, path, options, names); err != nil {
		return semantics.Entity{}, err
	}
	return b.store.UpdateEntity(ctx, kind, path, options, names)
}

// DeleteEntity removes an entity and all it holds, a topic with its subscriptions (ENT-8). INVALID_ARGUMENT,
// ENTITY_NOT_FOUND.
func (b *Broker) DeleteEntity(ctx context.Context, kind semantics.Kind, name string) error {
	path, err := parseEntityPath(kind, name)
	if err != nil {
		return err
	}
	if err := b.admit(managementCost); err != nil {
		return err
	}
	return b.store.DeleteEntity(ctx, kind, path)
}

// ListEntities returns one page of entities of a kind in order of name and the token of the next page, "" after the
// last (ENT-17). topic is the one whose subscriptions are listed, "" for other kinds. pageSize 0 means MaxPageSize.
// ARGUMENT_OUT_OF_RANGE, INVALID_ARGUMENT for a token it did not make, ENTITY_NOT_FOUND for the topic.
func (b *Broker) ListEntities(
	ctx context.Context, kind semantics.Kind, topic string, pageSize int, pageToken string,
) ([]semantics.Entity, string, error) {
	return b.ListEntitiesByPrefix(ctx, kind, topic, "", pageSize, pageToken)
}

// ListEntitiesByPrefix is ListEntities of those whose names begin with prefix, without case; that of a subscription is
// the one within its topic. INVALID_ARGUMENT for a prefix that no name has.
func (b *Broker) ListEntitiesByPrefix(
	ctx context.Context, kind semantics.Kind, topic, prefix string, pageSize int, pageToken string,
) ([]semantics.Entity, string, error) {
	if kind == semantics.SubscriptionKind {
		var err error
		if topic, err = semantics.ParsePath(topic); err != nil {
			return nil, "", err
		}
	}
	prefix, err := semantics.ParsePrefix(prefix)
	if err != nil {
		return nil, "", err
	}
	size, after, err := readPage(pageSize, pageToken)
	if err != nil {
		return nil, "", err
	}
	if err := b.admit(managementCost); err != nil {
		return nil, "", err
	}
	entities, more, err := b.store.ListEntities(ctx, kind, topic, max(after, before(prefix)), size)
	for i, e := range entities {
		if !strings.HasPrefix(semantics.Fold(e.OwnName()), prefix) { // those that have it are first, in order of name
			return entities[:i], "", err
		}
	}
	if err != nil || !more || len(entities) == 0 {
		return entities, "", err
	}
	return entities, pageTokenAfter(entities[len(entities)-1].OwnName()), nil
}

// before returns a text that comes after all folded names that are less than prefix, and before all that begin with it.
func before(prefix string) string {
	if prefix == "" {
		return ""
	}
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]-1) + "\x7f" // beyond every character of a name
}

// readPage checks what a caller says of the page it wants: how many rows, and after which folded name it begins.
func readPage(size int, token string) (rows int, after string, err error) {
	if size == 0 {
		size = semantics.MaxPageSize
	}
	if size < 1 || size > semantics.MaxPageSize {
		return 0, "", semantics.FieldError(
			semantics.ArgumentOutOfRange, "pageSize", "is %d, must be 1 to %d", size, semantics.MaxPageSize,
		)
	}
	name, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || !utf8.Valid(name) {
		return 0, "", semantics.InvalidField("pageToken", "is not a token of an earlier page")
	}
	return size, string(name), nil
}

// pageTokenAfter is the token of the page that begins after a name.
func pageTokenAfter(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(semantics.Fold(name)))
}

// Runtime counts an entity (CNT-1, CNT-2), also an UnmatchedSubscription. INVALID_ARGUMENT, ENTITY_NOT_FOUND.
func (b *Broker) Runtime(ctx context.Context, kind semantics.Kind, name string) (semantics.Runtime, error) {
	path, err := parseEntityPath(kind, name)
	if kind == semantics.SubscriptionKind && semantics.IsUnmatched(name) {
		path, err = semantics.Source{Path: name, SubQueue: semantics.TransferDeadLetterQueue}.CheckedPath()
	}
	if err != nil {
		return semantics.Runtime{}, err
	}
	if err := b.admit(managementCost); err != nil {
		return semantics.Runtime{}, err
	}
	return b.store.Runtime(ctx, kind, path)
}

// getSource reads a queue or a subscription, whichever the path names.
func (b *Broker) getSource(ctx context.Context, path string) (semantics.Entity, error) {
	if _, _, ok := semantics.SplitSubscription(path); ok {
		return b.store.GetEntity(ctx, semantics.SubscriptionKind, path)
	}
	queue, err := b.store.GetEntity(ctx, semantics.QueueKind, path)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		if topic, found := b.store.GetEntity(ctx, semantics.TopicKind, path); found == nil {
			return semantics.Entity{}, semantics.NotASource(topic.Name)
		}
	}
	return queue, err
}
