package entities

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/inprocess"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Export reads what a sidecar has: queues and topics whose names begin with prefix, by name, and of these topics all
// subscriptions with their rules. A prefix may begin with "queues/" or "topics/". Options that have their default are
// left out, as is a lone $Default.
func Export(ctx context.Context, api sidebusv1.AdminClient, prefix string, tell func(done, of int)) (*Set, error) {
	is := newPresent(api, tell)
	ofQueues, onlyQueues := strings.CutPrefix(prefix, "queues/")
	ofTopics, onlyTopics := strings.CutPrefix(prefix, "topics/")
	if !onlyTopics {
		if err := is.readQueues(ctx, ofQueues); err != nil {
			return nil, err
		}
	}
	if !onlyQueues {
		if err := is.readTopics(ctx, ofTopics, func(string) bool { return true }); err != nil {
			return nil, err
		}
	}
	is.of = is.looks
	for _, key := range is.order {
		if client.Kind(is.byKey[key].resource) == semantics.SubscriptionKind {
			is.of++
		}
	}
	set := &Set{}
	usual, err := defaults(ctx)
	for _, key := range is.order {
		if err != nil {
			return nil, err
		}
		there := is.byKey[key]
		e := &Entity{
			Resource:    there.resource,
			Description: withoutDefaults(there.description, usual[client.Kind(there.resource)]),
		}
		if subscription, ok := e.Description.(*sidebusv1.Subscription); ok {
			if err = exportRules(ctx, is, e, subscription); isGone(err) {
				err = nil
				continue
			}
		}
		set.noteUnknown(e)
		if err == nil {
			err = set.add(e)
		}
	}
	return set, err
}

// noteUnknown reports options that this version does not know.
func (s *Set) noteUnknown(e *Entity) {
	if len(e.Description.ProtoReflect().GetUnknown()) > 0 {
		s.Notes = append(
			s.Notes, fmt.Sprintf("%s has options that this sidebus does not know; they are left out", e.Resource),
		)
	}
}

// exportRules adds the rules of a subscription, unless they are those that it gets without any.
func exportRules(ctx context.Context, is *present, e *Entity, s *sidebusv1.Subscription) error {
	rules, err := is.rules(ctx, e.Resource)
	if err != nil {
		return err
	}
	if len(rules) == 1 && semantics.Fold(rules[0].GetName()) == semantics.Fold(semantics.DefaultRule) &&
		rules[0].GetFilter().GetAll() != nil &&
		rules[0].GetAction() == nil {
		return nil
	}
	e.HasRules = true
	for _, rule := range rules {
		rule.CreatedAt = nil
	}
	s.Rules = rules
	return nil
}

// defaults returns an entity of each kind as it is made without any options.
func defaults(ctx context.Context) (map[semantics.Kind]client.Description, error) {
	api, usual := inprocess.Empty(), map[semantics.Kind]client.Description{}
	for _, name := range []string{"queues/q", "topics/t", "topics/t/subscriptions/s"} {
		answer, err := client.Ensure(ctx, api, name, client.Blank(name))
		if err != nil {
			return nil, err
		}
		usual[client.Kind(name)] = resource(answer)
	}
	return usual, nil
}

// withoutDefaults returns the options of an entity that are not as usual. A lifetime that is usually bounded and is not
// here would be absent, but there is none such.
func withoutDefaults(is, usual client.Description) client.Description {
	d := proto.CloneOf(is)
	m, other := d.ProtoReflect(), usual.ProtoReflect()
	keyed := m.Descriptor().Fields().ByName("enable_partitioning")
	isKeyed := keyed != nil && m.Get(keyed).Bool()
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if isKeyed && field.Name() == "partitions" { // its default is another one there (PART-1)
			return true
		}
		isTime := field.Message() != nil && field.Message().FullName() == "google.protobuf.Timestamp"
		if isTime || field.Name() != "name" && other.Has(field) && value.Equal(other.Get(field)) {
			m.Clear(field)
		}
		return true
	})
	return d
}
