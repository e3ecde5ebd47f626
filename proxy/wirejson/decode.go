package wirejson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Messages whose JSON is not an object of their fields, and the field whose JSON is the value itself.
const (
	durationName  = "google.protobuf.Duration"
	timestampName = "google.protobuf.Timestamp"
	valueName     = "sidebus.v1.Value"
	messageName   = "sidebus.v1.Message"
	rawField      = "json"

	// allIfAbsent is the list whose absence means all messages. gRPC does not distinguish an empty list from an absent
	// one. JSON does, and an empty list is rejected because its sender does not mean all.
	allIfAbsent = "sidebus.v1.ResubmitRequest.sequence_numbers"
)

// Decode decodes the JSON form of a message, as the body of a request is decoded. It does not retain data and may be
// called concurrently.
func Decode(data []byte, into proto.Message) error {
	if err := decode(data, into); err != nil {
		return err
	}
	return nil
}

// decode decodes the JSON form of a message as docs/api describes it. It differs from protojson in durations and
// properties, in the field json, in its error messages, and in that a null resets nothing. Its errors name the field
// and are INVALID_ARGUMENT, or ARGUMENT_OUT_OF_RANGE for a number that its field cannot hold.
func decode(data []byte, into proto.Message) *semantics.Error {
	if !utf8.Valid(data) {
		return semantics.Errorf(semantics.InvalidArgument, "the body must be valid UTF-8")
	}
	if !json.Valid(data) {
		return syntaxError(data)
	}
	s := &scanner{data: data}
	return decodeMessage(s, into.ProtoReflect(), "")
}

func syntaxError(data []byte) *semantics.Error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		return semantics.Errorf(
			semantics.InvalidArgument, "the body is not valid JSON: %s at byte %d", syntax, syntax.Offset,
		)
	}
	return semantics.Errorf(semantics.InvalidArgument, "the body is not valid JSON")
}

// Refused returns the error about the field at path, "" for the whole body, whose value is not accepted.
func Refused(code semantics.Code, path, format string, args ...any) *semantics.Error {
	name := path
	if name == "" {
		name = "the body"
	}
	e := semantics.Errorf(code, "%s %s", name, fmt.Sprintf(format, args...))
	if path != "" {
		e = e.With(semantics.DetailField, path)
	}
	return e
}

// BadValue is Refused with INVALID_ARGUMENT.
func BadValue(path, format string, args ...any) *semantics.Error {
	return Refused(semantics.InvalidArgument, path, format, args...)
}

// below returns the path of a member.
func below(path, name string) string {
	if path == "" {
		return semantics.Shorten(name)
	}
	return path + "." + semantics.Shorten(name)
}

func decodeMessage(s *scanner, m protoreflect.Message, path string) *semantics.Error {
	if !s.open('{') {
		return BadValue(path, "must be an object")
	}
	fields := m.Descriptor().Fields()
	var seen [2]uint64 // by index of the field; no message has more than 128
	for s.next('}') {
		name := s.key()
		at := below(path, name)
		field := fields.ByJSONName(name)
		if field == nil {
			field = fields.ByTextName(name)
		}
		if field == nil {
			if !isBrokers(m.Descriptor(), name) {
				return unknownField(at, name, fields)
			}
			s.value()
			continue
		}
		word, bit := field.Index()/64, uint64(1)<<(field.Index()%64)
		if seen[word]&bit != 0 {
			return BadValue(at, "appears twice")
		}
		seen[word] |= bit
		if err := decodeField(s, m, field, at); err != nil {
			return err
		}
	}
	return nil
}

// isBrokers reports whether only the broker sets the field name. A sender may leave such a field in a message that it
// has received and sends again; the field is ignored (MSG-4).
func isBrokers(message protoreflect.MessageDescriptor, name string) bool {
	return message.FullName() == messageName &&
		(&sidebusv1.ReceivedMessage{}).ProtoReflect().Descriptor().Fields().ByJSONName(name) != nil
}

func decodeField(s *scanner, m protoreflect.Message, field protoreflect.FieldDescriptor, at string) *semantics.Error {
	isRaw := isRawField(field)
	if s.peek() == 'n' && !isRaw {
		s.value()
		return nil // null is the same as absent
	}
	if one := field.ContainingOneof(); one != nil && !one.IsSynthetic() {
		if other := m.WhichOneof(one); other != nil {
			return BadValue(at, "cannot be set together with %s", other.JSONName())
		}
	}
	switch {
	case isRaw:
		m.Set(field, protoreflect.ValueOfString(string(s.value())))
		return nil
	case field.IsMap():
		return decodeMap(s, m.Mutable(field).Map(), field, at)
	case field.IsList():
		list := m.Mutable(field).List()
		if err := decodeList(s, list, field, at); err != nil || list.Len() > 0 || field.FullName() != allIfAbsent {
			return err
		}
		return BadValue(at, "must not be empty; leave it out to mean all")
	case field.Message() != nil:
		return decodeNested(s, m, field, at)
	}
	value, err := decodeScalar(s.value(), field, at)
	if err == nil {
		m.Set(field, value)
	}
	return err
}

func isRawField(field protoreflect.FieldDescriptor) bool {
	return field.Name() == rawField && field.Kind() == protoreflect.StringKind
}

func decodeList(s *scanner, list protoreflect.List, field protoreflect.FieldDescriptor, at string) *semantics.Error {
	if !s.open('[') {
		return BadValue(at, "must be a list")
	}
	for s.next(']') {
		i := list.Len()
		element := fmt.Sprintf("%s[%d]", at, i)
		if field.Message() != nil {
			value := list.NewElement()
			if err := decodeMessage(s, value.Message(), element); err != nil {
				return err.With(positionOf(field.Message()), strconv.Itoa(i))
			}
			list.Append(value)
			continue
		}
		value, err := decodeScalar(s.value(), field, element)
		if err != nil {
			return err.With(semantics.DetailIndex, strconv.Itoa(i))
		}
		list.Append(value)
	}
	return nil
}

// positionOf returns the detail that has the position of an element. An operation of a transaction has its own, beside
// the position of what is wrong in it (TX-11).
func positionOf(element protoreflect.MessageDescriptor) string {
	if element.Name() == "Operation" {
		return semantics.DetailOperation
	}
	return semantics.DetailIndex
}

func decodeMap(s *scanner, entries protoreflect.Map, field protoreflect.FieldDescriptor, at string) *semantics.Error {
	if !s.open('{') {
		return BadValue(at, "must be an object")
	}
	if field.MapValue().Message().FullName() != valueName {
		return BadValue(at, "cannot be read")
	}
	for s.next('}') {
		name := s.key()
		element := at + "[" + semantics.Shorten(name) + "]"
		key := protoreflect.ValueOfString(name).MapKey()
		if entries.Has(key) {
			return BadValue(element, "appears twice")
		}
		value := entries.NewValue()
		if err := decodeProperty(s, value.Message().Interface().(*sidebusv1.Value), element); err != nil {
			return err
		}
		entries.Set(key, value)
	}
	return nil
}

// mayBeNever reports whether a duration is a lifetime, which may be "never". Other durations may not: if they are
// absent, that has another meaning, and "never" would get the opposite effect. An abandoned message that must not come
// back would come back at once.
func mayBeNever(field protoreflect.FieldDescriptor) bool {
	return field.Name() == "time_to_live" || semantics.MayBeNever(field.JSONName())
}

func decodeNested(s *scanner, m protoreflect.Message, field protoreflect.FieldDescriptor, at string) *semantics.Error {
	switch field.Message().FullName() {
	case durationName:
		text, ok := unquote(s.value())
		if text == "never" && mayBeNever(field) {
			return nil // the same as absent
		}
		var d *durationpb.Duration
		if ok {
			d, ok = ParseDuration(text)
		}
		switch {
		case ok:
		case mayBeNever(field):
			return BadValue(at, `must be a duration such as "30s", "1m30s" or "PT30S", or "never"`)
		default:
			return BadValue(at, `must be a duration such as "30s", "1m30s" or "PT30S"`)
		}
		m.Set(field, protoreflect.ValueOfMessage(d.ProtoReflect()))
	case timestampName:
		text, _ := unquote(s.value())
		instant, err := ParseInstant(text, at)
		if err != nil {
			return err
		}
		m.Set(field, protoreflect.ValueOfMessage(instant.ProtoReflect()))
	default:
		return decodeMessage(s, m.Mutable(field).Message(), at)
	}
	return nil
}

// ParseInstant parses an instant in RFC 3339. at is the path of its field.
func ParseInstant(text, at string) (*timestamppb.Timestamp, *semantics.Error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	instant := timestamppb.New(t)
	if err != nil || !instant.IsValid() { // the year in UTC may differ from the year in the text
		return nil, BadValue(at, `must be an instant such as "2026-01-02T03:04:05Z"`)
	}
	return instant, nil
}
