package grpcapi

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// description is what describes an entity on the wire: a Queue, Topic or Subscription. It may be a nil pointer.
type description interface {
	proto.Message
	GetName() string
}

// optionsOf gives the options in a description of an entity with defaults for those that are absent, and the names of
// those that are not. On both sides options have the same names and words the same numbers, so that no option can be
// forgotten here.
func optionsOf(kind semantics.Kind, d description) (options semantics.Options, given []string, err error) {
	options = semantics.DefaultOptions()
	if err := refuseUnknown(kind.String(), d); err != nil {
		return options, nil, err
	}
	m := d.ProtoReflect()
	for _, name := range semantics.OptionNames(kind) {
		field := m.Descriptor().Fields().ByJSONName(name)
		if !m.Has(field) {
			continue
		}
		if err := takeOption(name, field, m.Get(field), optionIn(&options, name)); err != nil {
			return options, nil, err
		}
		given = append(given, name)
	}
	return options, given, nil
}

// optionIn gives the named option to read or set.
func optionIn(options *semantics.Options, name string) reflect.Value {
	return reflect.ValueOf(options).
		Elem().
		FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
}

func takeOption(name string, field protoreflect.FieldDescriptor, from protoreflect.Value, to reflect.Value) error {
	switch field.Kind() {
	case protoreflect.MessageKind:
		d, err := duration(name, from.Message().Interface().(*durationpb.Duration))
		to.SetInt(int64(d))
		return err
	case protoreflect.EnumKind:
		words := field.Enum().Values()
		if words.ByNumber(from.Enum()) == nil {
			return fieldError(name, "must be one of %v", namesOf(words))
		}
		to.SetUint(uint64(from.Enum())) //nolint:gosec // no word has a negative number
	case protoreflect.BoolKind:
		to.SetBool(from.Bool())
	case protoreflect.StringKind:
		to.SetString(from.String())
	default:
		to.SetInt(from.Int())
	}
	return nil
}

func namesOf(words protoreflect.EnumValueDescriptors) []protoreflect.Name {
	names := make([]protoreflect.Name, words.Len())
	for i := range names {
		names[i] = words.Get(i).Name()
	}
	return names
}

// leftOut are the options whose zero means that there is none.
var leftOut = []string{"maxMessageCount", "forwardTo", "forwardDeadLetteredMessagesTo", "unmatchedTo"}

// putOptions is the opposite of optionsOf: it sets all options but those that say "none".
func putOptions(e semantics.Entity, d description) {
	m := d.ProtoReflect()
	for _, name := range semantics.OptionNames(e.Kind) {
		field := m.Descriptor().Fields().ByJSONName(name)
		switch from := optionIn(&e.Options, name); {
		case field.Kind() == protoreflect.MessageKind:
			if span := time.Duration(from.Int()); span < semantics.Never {
				m.Set(field, protoreflect.ValueOfMessage(durationpb.New(span).ProtoReflect()))
			}
		case field.Kind() == protoreflect.EnumKind:
			m.Set(field, protoreflect.ValueOfEnum(protoreflect.EnumNumber(from.Uint()))) //nolint:gosec // a word
		case field.Kind() == protoreflect.Int32Kind:
			m.Set(
				field, protoreflect.ValueOfInt32(int32(from.Int())),
			) //nolint:gosec // the bounds of the options are within int32
		case from.IsZero() && slices.Contains(leftOut, name):
		default:
			m.Set(field, protoreflect.ValueOf(from.Interface()))
		}
	}
}

func queueFrom(e semantics.Entity) *sidebusv1.Queue {
	queue := &sidebusv1.Queue{
		Name: e.Name, CreatedAt: timestamp(e.CreatedAt), UpdatedAt: timestamp(e.UpdatedAt),
		AccessedAt: timestamp(e.AccessedAt),
	}
	putOptions(e, queue)
	return queue
}

func topicFrom(e semantics.Entity) *sidebusv1.Topic {
	topic := &sidebusv1.Topic{
		Name: e.Name, CreatedAt: timestamp(e.CreatedAt), UpdatedAt: timestamp(e.UpdatedAt),
		AccessedAt: timestamp(e.AccessedAt),
	}
	putOptions(e, topic)
	return topic
}

func subscriptionFrom(e semantics.Entity) *sidebusv1.Subscription {
	_, name, _ := semantics.SplitSubscription(e.Name)
	subscription := &sidebusv1.Subscription{
		Name: name, CreatedAt: timestamp(e.CreatedAt), UpdatedAt: timestamp(e.UpdatedAt),
		AccessedAt: timestamp(e.AccessedAt),
	}
	putOptions(e, subscription)
	return subscription
}

// notOptions are the fields of entities that no update changes. A mask may name them, as one made from what was read
// does; that is ignored, as AIP-161 asks for.
var notOptions = []string{"name", "createdAt", "updatedAt", "accessedAt"}

// maskOf translates the paths of a field mask, in snake_case or lowerCamelCase, to names of options. A path that is no
// field of the description stays as it is, for the Broker to refuse.
func maskOf(d description, paths []string) []string {
	fields := d.ProtoReflect().Descriptor().Fields()
	var names []string
	for _, path := range paths {
		name := strings.TrimSpace(path)
		if field := fields.ByTextName(name); field != nil {
			name = field.JSONName()
		}
		if name != "" && !slices.Contains(notOptions, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
