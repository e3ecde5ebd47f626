package grpcapi

import (
	"context"
	"strings"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Pieces of resource names.
const (
	queuePrefix          = "queues/"
	topicPrefix          = "topics/"
	subscriptionsSegment = "/subscriptions/"
	rulesSegment         = "/rules/"
)

// The forms of resource names, for error messages.
var forms = [...]string{
	semantics.QueueKind:        `"queues/" and the name of a queue`,
	semantics.TopicKind:        `"topics/" and the name of a topic`,
	semantics.SubscriptionKind: `"topics/{topic}/subscriptions/{subscription}"`,
}

// pathOf returns the path of the entity that a resource name names. A resource name of another kind is
// INVALID_ARGUMENT.
func pathOf(kind semantics.Kind, field, resource string) (string, error) {
	if path, is, ok := parseResource(resource); ok && is == kind {
		return path, nil
	}
	return "", semantics.InvalidField(field, "is %q, must be %s", semantics.Shorten(resource), forms[kind])
}

// parseResource returns the path of an entity and its kind. It does not check the names.
func parseResource(resource string) (path string, kind semantics.Kind, ok bool) {
	if name, ok := strings.CutPrefix(resource, queuePrefix); ok {
		return name, semantics.QueueKind, true
	}
	name, ok := strings.CutPrefix(resource, topicPrefix)
	if !ok {
		return "", 0, false
	}
	if topic, subscription, ok := semantics.SplitSubscription(name); ok {
		return semantics.SubscriptionPath(topic, subscription), semantics.SubscriptionKind, true
	}
	return name, semantics.TopicKind, true
}

// resourceOf is the opposite of parseResource.
func resourceOf(kind semantics.Kind, path string) string {
	switch topic, subscription, isSubscription := semantics.SplitSubscription(path); {
	case kind == semantics.QueueKind:
		return queuePrefix + path
	case isSubscription:
		return topicPrefix + topic + subscriptionsSegment + subscription
	default:
		return topicPrefix + path
	}
}

// subscriptionPath returns the path of a subscription from its topic's resource name and its own name.
func subscriptionPath(topic, name string) (string, error) {
	path, err := pathOf(semantics.TopicKind, "topic", topic)
	if err == nil && strings.ContainsAny(name, `/\`) { // otherwise it would be part of the topic's path
		err = semantics.InvalidField("name", "must be the name of a subscription within its topic, without a slash")
	}
	return semantics.SubscriptionPath(path, name), err
}

// rulePath returns the path of a subscription and the name of its rule from the resource name of the rule.
func rulePath(field, resource string) (subscription, name string, err error) {
	at := strings.LastIndex(resource, rulesSegment)
	if at >= 0 {
		subscription, err = pathOf(semantics.SubscriptionKind, field, resource[:at])
	}
	if at < 0 || err != nil {
		return "", "", semantics.InvalidField(field, "must be %s", `"topics/{topic}/subscriptions/{subscription}/rules/{rule}"`)
	}
	return subscription, resource[at+len(rulesSegment):], nil
}

// targetOf translates the target of a send. The Broker rejects a target that cannot be sent to.
func targetOf(field, resource string) (semantics.Target, error) {
	path, kind, ok := parseResource(resource)
	if !ok {
		return semantics.Target{}, semantics.InvalidField(
			field, "must be %s or %s", forms[semantics.QueueKind], forms[semantics.TopicKind],
		)
	}
	return semantics.Target{Path: path, IsTopic: kind == semantics.TopicKind}, nil
}

// sourceName returns the path of the source of a receive. It accepts a topic: see sources.
func sourceName(resource string) (string, error) {
	path, kind, ok := parseResource(resource)
	if !ok {
		return "", semantics.InvalidField(
			"source", "must be %s or %s", forms[semantics.QueueKind], forms[semantics.SubscriptionKind],
		)
	}
	if kind == semantics.QueueKind { // the path of a subscription must not be accepted as that of a queue
		return semantics.ParsePath(path)
	}
	return path, nil
}

// sources finds out which entities a service may receive from.
type sources struct{ broker *broker.Broker }

// receivable returns an error if the resource name is that of an existing topic (ERR-5, TOPIC-8). A path alone does not
// distinguish a topic from a queue, and a queue must not be received from under the resource name of a topic. If err is
// not nil, receivable returns it unchanged.
func (s sources) receivable(ctx context.Context, resource string, err error) error {
	path, isTopic, err := s.topicOf(ctx, resource, err)
	if err != nil || !isTopic {
		return err
	}
	return semantics.Errorf(semantics.InvalidOperation,
		"cannot receive from a topic; use one of its subscriptions, %s%s%s",
		resourceOf(semantics.TopicKind, path), subscriptionsSegment, "{subscription}").
		With(semantics.DetailEntity, path)
}

// topicOf reports whether a resource name is that of a topic, and returns an error if that topic does not exist. If err
// is not nil, topicOf returns it unchanged.
func (s sources) topicOf(ctx context.Context, resource string, err error) (path string, isTopic bool, _ error) {
	path, kind, _ := parseResource(resource)
	if err != nil || kind != semantics.TopicKind {
		return path, false, err
	}
	_, err = s.broker.GetEntity(ctx, kind, path)
	return path, true, err
}
