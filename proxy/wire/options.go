package wire

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Description describes an entity on the wire: a Queue, Topic or Subscription. It may be a nil pointer.
type Description interface {
	proto.Message
	GetName() string
}

// OptionsOf returns the options in the description of an entity, with defaults for absent ones, and the names of those
// that are present.
func OptionsOf(kind semantics.Kind, d Description) (options semantics.Options, given []string, err error) {
	options = semantics.DefaultOptions()
	if err := RefuseUnknown(kind.String(), d); err != nil {
		return options, nil, err
	}
	m := d.ProtoReflect()
	for _, option := range semantics.OptionsOf(kind) {
		field := m.Descriptor().Fields().ByJSONName(option.Name)
		if !m.Has(field) {
			continue
		}
		if err := takeOption(option, field, m.Get(field), &options); err != nil {
			return options, nil, err
		}
		given = append(given, option.Name)
	}
	return options, given, nil
}

// takeOption sets an option to the value of its field. The words of an option have the same numbers on both sides.
func takeOption(
	option semantics.Option, field protoreflect.FieldDescriptor, from protoreflect.Value, into *semantics.Options,
) (err error) {
	switch v := option.Value.(type) {
	case semantics.DurationOption:
		*v.At(into), err = DurationOf(option.Name, from.Message().Interface().(*durationpb.Duration))
	case semantics.IntegerOption:
		*v.At(into) = from.Int()
	case semantics.BoolOption:
		*v.At(into) = from.Bool()
	case semantics.TextOption:
		*v.At(into) = from.String()
	case semantics.WordOption:
		words := field.Enum().Values()
		if words.ByNumber(from.Enum()) == nil {
			return semantics.InvalidField(option.Name, "must be one of %s", namesOf(words))
		}
		v.Set(into, uint8(from.Enum()))
	}
	return err
}

// namesOf returns the words that a kind has, which may be fewer than the option has.
func namesOf(words protoreflect.EnumValueDescriptors) string {
	names := make([]string, words.Len())
	for i := range names {
		names[i] = string(words.Get(i).Name())
	}
	return strings.Join(names, ", ")
}

// putOptions is the opposite of OptionsOf: it sets all fields except those of options that are "none".
func putOptions(e semantics.Entity, d Description) {
	m := d.ProtoReflect()
	for _, option := range semantics.OptionsOf(e.Kind) {
		field := m.Descriptor().Fields().ByJSONName(option.Name)
		if value := optionFrom(option, field.Kind(), &e.Options); value.IsValid() {
			m.Set(field, value)
		}
	}
}

// optionFrom returns the value of an option for a field of a kind, an invalid one if the option is "none".
func optionFrom(option semantics.Option, kind protoreflect.Kind, from *semantics.Options) protoreflect.Value {
	var none protoreflect.Value
	switch v := option.Value.(type) {
	case semantics.DurationOption:
		if span := *v.At(from); span < semantics.Never {
			return protoreflect.ValueOfMessage(durationpb.New(span).ProtoReflect())
		}
		return none
	case semantics.IntegerOption:
		return integerFrom(*v.At(from), v.Min, kind)
	case semantics.BoolOption:
		return protoreflect.ValueOfBool(*v.At(from))
	case semantics.TextOption:
		if path := *v.At(from); v.IsPath && path == "" {
			return none
		}
		return protoreflect.ValueOfString(*v.At(from))
	case semantics.WordOption:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(v.Get(from)))
	default:
		return none
	}
}

func integerFrom(n, least int64, kind protoreflect.Kind) protoreflect.Value {
	switch {
	case n == 0 && least == 0:
		return protoreflect.Value{}
	case kind == protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)) // the bounds of such an option are within int32
	default:
		return protoreflect.ValueOfInt64(n)
	}
}

// QueueFrom returns the description of a queue.
func QueueFrom(e semantics.Entity) *sidebusv1.Queue {
	queue := &sidebusv1.Queue{
		Name: e.Name, CreatedAt: TimestampFrom(e.CreatedAt), UpdatedAt: TimestampFrom(e.UpdatedAt),
		AccessedAt: TimestampFrom(e.AccessedAt),
	}
	putOptions(e, queue)
	return queue
}

// TopicFrom returns the description of a topic.
func TopicFrom(e semantics.Entity) *sidebusv1.Topic {
	topic := &sidebusv1.Topic{
		Name: e.Name, CreatedAt: TimestampFrom(e.CreatedAt), UpdatedAt: TimestampFrom(e.UpdatedAt),
		AccessedAt: TimestampFrom(e.AccessedAt),
	}
	putOptions(e, topic)
	return topic
}

// SubscriptionFrom returns the description of a subscription.
func SubscriptionFrom(e semantics.Entity) *sidebusv1.Subscription {
	_, name, _ := semantics.SplitSubscription(e.Name)
	subscription := &sidebusv1.Subscription{
		Name: name, CreatedAt: TimestampFrom(e.CreatedAt), UpdatedAt: TimestampFrom(e.UpdatedAt),
		AccessedAt: TimestampFrom(e.AccessedAt),
	}
	putOptions(e, subscription)
	return subscription
}

// notOptions are the fields of entities that an update cannot change. A mask may name them, as one built from a
// description does. They are ignored, as AIP-161 requires.
var notOptions = []string{"name", "createdAt", "updatedAt", "accessedAt"}

// MaskOf translates the paths of a field mask, in snake_case or lowerCamelCase, to names of options. It leaves a path
// that is not a field of the description unchanged, and the Broker rejects it.
func MaskOf(d Description, paths []string) []string {
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
