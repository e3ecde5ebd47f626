package wire

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Every option of a kind is on the wire under its name, and nothing else is but the name, the times and the first
// rules. A value that is not the default one comes back.
func TestENT_6_EveryOptionIsOnTheWire(t *testing.T) {
	t.Parallel()
	for kind, d := range map[semantics.Kind]Description{
		semantics.QueueKind: &sidebusv1.Queue{}, semantics.TopicKind: &sidebusv1.Topic{}, semantics.SubscriptionKind: &sidebusv1.Subscription{},
	} {
		names, m := slices.Clone(semantics.OptionNames(kind)), d.ProtoReflect()
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			isOption := slices.Contains(names, field.JSONName())
			if !isOption && field.JSONName() != "rules" && !slices.Contains(notOptions, field.JSONName()) {
				t.Errorf("%s: %s is no option", kind, field.JSONName())
			}
			if isOption {
				m.Set(field, unlike(field))
			}
			if words := field.Enum(); words != nil {
				sameWords(t, field.JSONName(), words.Values())
			}
		}
		options, given, err := OptionsOf(kind, d)
		if err != nil || !slices.Equal(given, names) {
			t.Errorf("%s: %v is given, %v; want %v", kind, given, err, names)
		}
		for _, difference := range semantics.DefaultOptions().Differences(options, names) {
			names = slices.DeleteFunc(names, func(name string) bool { return name == difference.Option })
		}
		if len(names) > 0 {
			t.Errorf("%s: %v keep their defaults", kind, names)
		}
		again := m.New().Interface().(Description)
		putOptions(semantics.Entity{Kind: kind, Options: options}, again)
		for i := range fields.Len() {
			if field := fields.Get(i); m.Has(field) && !again.ProtoReflect().Get(field).Equal(m.Get(field)) {
				t.Errorf("%s: %s comes back as %v", kind, field.JSONName(), again.ProtoReflect().Get(field))
			}
		}
	}
}

// sameWords checks that the words of an option that are on the wire have the same numbers on both sides.
func sameWords(t *testing.T, option string, words protoreflect.EnumValueDescriptors) {
	t.Helper()
	row, _ := semantics.OptionNamed(option)
	value, _ := row.Value.(semantics.WordOption)
	for i := range words.Len() {
		word := words.Get(i)
		if number := int(word.Number()); number >= len(value.Words) || value.Words[number] != string(word.Name()) {
			t.Errorf("%s: %d is %s on the wire, and not one of %v", option, number, word.Name(), value.Words)
		}
	}
}

// unlike returns a value that is not the default.
func unlike(field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(durationpb.New(77 * time.Second).ProtoReflect())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.BoolKind:
		isDefault := map[protoreflect.Name]bool{"enable_batched_operations": true, "support_ordering": true, "dead_lettering_on_filter_evaluation_exceptions": true}
		return protoreflect.ValueOfBool(!isDefault[field.Name()])
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	default:
		return protoreflect.ValueOfInt64(7)
	}
}
