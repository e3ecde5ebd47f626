package client

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/nearest"
)

const never = "never"

// Description is what describes an entity: a Queue, Topic or Subscription.
type Description interface {
	proto.Message
	GetName() string
}

// isOption reports whether a field is an option, and not the name, a time or the first rules of a subscription.
func isOption(field protoreflect.FieldDescriptor) bool {
	isTime := field.Message() != nil && field.Message().FullName() == "google.protobuf.Timestamp"
	return field.Name() != "name" && !field.IsList() && !isTime
}

// Options reads options into the description of an entity, each "option=value" with the option's name in the API. No
// value stands for the default. The paths are the names of what was given, for an update mask. Bounds are the sidecar's
// to check.
func Options(into Description, settings []string) (paths []string, err error) {
	seen := map[string]bool{}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, fmt.Errorf("%q must be option=value", setting)
		}
		if hasOption, hint := HasOption(into)(name); !hasOption {
			return nil, fmt.Errorf("there is no option %q%s", name, hint)
		}
		if seen[name] {
			return nil, fmt.Errorf("%s appears twice", name)
		}
		seen[name] = true
		paths = append(paths, name)
		if value == "" {
			continue
		}
		if err := SetOption(into, name, value); err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
	}
	return paths, nil
}

// HasOption returns a function that reports whether a name is an option of the entity. If it is not, hint is the option
// that was probably meant, or a list of all.
func HasOption(of Description) func(name string) (ok bool, hint string) {
	m := of.ProtoReflect().Descriptor()
	return func(name string) (bool, string) {
		if field := m.Fields().ByJSONName(name); field != nil && isOption(field) {
			return true, ""
		}
		if option := nearest.Of(name, OptionNames(of)); option != "" {
			return false, fmt.Sprintf("; did you mean %s?", option)
		}
		return false, fmt.Sprintf(
			"; the options of a %s are %s", strings.ToLower(string(m.Name())), strings.Join(OptionNames(of), ", "),
		)
	}
}

// SetOption reads an option that there is from its text. "never" is the longest lifetime, which is given where an
// absent one is not.
func SetOption(into Description, name, text string) error {
	m := into.ProtoReflect()
	field := m.Descriptor().Fields().ByJSONName(name)
	if text == never && semantics.MayBeNever(name) {
		m.Set(field, protoreflect.ValueOfMessage((&durationpb.Duration{Seconds: longest}).ProtoReflect()))
		return nil
	}
	read, err := readOption(field, text)
	if err == nil {
		m.Set(field, read)
	}
	return err
}

// longest are the seconds of the longest duration on the wire, which means never.
const longest = 315_576_000_000

// OptionNames are the names of all options of an entity, in the order of the API.
func OptionNames(of Description) []string {
	var names []string
	fields := of.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if isOption(fields.Get(i)) {
			names = append(names, fields.Get(i).JSONName())
		}
	}
	return names
}

// IsGiven reports whether an option is given.
func IsGiven(d Description, option string) bool {
	m := d.ProtoReflect()
	return m.Has(m.Descriptor().Fields().ByJSONName(option))
}

// Unset takes options away that may be given.
func Unset(d Description, options ...string) {
	m := d.ProtoReflect()
	for _, option := range options {
		if field := m.Descriptor().Fields().ByJSONName(option); field != nil {
			m.Clear(field)
		}
	}
}

// OptionValue returns the text of an option as a file of entities has it.
func OptionValue(d Description, option string) string {
	m := d.ProtoReflect()
	field := m.Descriptor().Fields().ByJSONName(option)
	if field.Kind() == protoreflect.MessageKind {
		return spanValue(m, field)
	}
	value := m.Get(field)
	if field.Kind() == protoreflect.EnumKind {
		if word := field.Enum().Values().ByNumber(value.Enum()); word != nil {
			return string(word.Name())
		}
	}
	return value.String()
}

// spanValue returns a duration as people write it.
func spanValue(m protoreflect.Message, field protoreflect.FieldDescriptor) string {
	span, _ := m.Get(field).Message().Interface().(*durationpb.Duration)
	switch {
	case semantics.MayBeNever(field.JSONName()) && (!m.Has(field) || span.AsDuration() >= semantics.Never):
		return never
	case !m.Has(field):
		return Absent
	default:
		return Span(span)
	}
}

// OptionText returns the text of an option, which a sidecar writes in seconds, as people write it.
func OptionText(resource, option, text string) string {
	field := Blank(resource).ProtoReflect().Descriptor().Fields().ByJSONName(option)
	if field == nil || field.Message() == nil {
		return text
	}
	if d, err := duration.Wire(text); err == nil {
		return Span(d)
	}
	return text
}

func readOption(field protoreflect.FieldDescriptor, value string) (protoreflect.Value, error) {
	var none protoreflect.Value
	switch field.Kind() {
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return none, fmt.Errorf("is %q, must be true or false", value)
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.Int32Kind:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return none, fmt.Errorf("is %q, must be a whole number of 32 bits", value)
		}
		return protoreflect.ValueOfInt32(int32(n)), nil
	case protoreflect.Int64Kind:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return none, fmt.Errorf("is %q, must be a whole number", value)
		}
		return protoreflect.ValueOfInt64(n), nil
	case protoreflect.EnumKind:
		var names []string
		for i := range field.Enum().Values().Len() {
			v := field.Enum().Values().Get(i)
			if names = append(names, string(v.Name())); strings.EqualFold(value, string(v.Name())) {
				return protoreflect.ValueOfEnum(v.Number()), nil
			}
		}
		return none, fmt.Errorf("is %q, must be one of %s", value, strings.Join(names, ", "))
	case protoreflect.MessageKind:
		d, err := duration.Wire(value)
		if err != nil {
			return none, err
		}
		return protoreflect.ValueOfMessage(d.ProtoReflect()), nil
	default:
		return protoreflect.ValueOfString(value), nil
	}
}

// OptionRows returns the name and the value of everything about an entity, for people.
func OptionRows(d Description) [][]string {
	var rows [][]string
	m := d.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		if field := m.Descriptor().Fields().Get(i); !field.IsList() {
			rows = append(rows, []string{field.JSONName(), optionText(m, field)})
		}
	}
	return rows
}

func optionText(m protoreflect.Message, field protoreflect.FieldDescriptor) string {
	switch {
	case semantics.MayBeNever(field.JSONName()) && !m.Has(field):
		return never
	case field.HasPresence() && !m.Has(field):
		return Absent
	case field.Kind() == protoreflect.EnumKind:
		return string(field.Enum().Values().ByNumber(m.Get(field).Enum()).Name())
	case field.Kind() != protoreflect.MessageKind:
		return OneLine(m.Get(field).String())
	}
	switch v := m.Get(field).Message().Interface().(type) {
	case *durationpb.Duration:
		return Span(v)
	case *timestamppb.Timestamp:
		return Instant(v)
	default:
		return Absent
	}
}

// Text returns an option that is a text, "" where it is not given or no option of the entity.
func Text(d Description, option string) string {
	m := d.ProtoReflect()
	field := m.Descriptor().Fields().ByJSONName(option)
	if field == nil || field.Kind() != protoreflect.StringKind {
		return ""
	}
	return m.Get(field).String()
}
