package wirejson

import (
	"encoding/base64"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Encode returns the JSON form of a message in the order of its fields. It is proto3 JSON that includes default values
// and leaves out absent ones, except for durations, properties and the field json (see decode). Encode does not check
// that the field json is JSON. It retains nothing and may be called concurrently.
func Encode(m proto.Message) []byte {
	return appendMessage(make([]byte, 0, 2*proto.Size(m)+64), m.ProtoReflect())
}

// onlyIfAny are the lists that most responses do not have. They are left out when they are empty.
var onlyIfAny = map[protoreflect.FullName]bool{"sidebus.v1.Subscription.rules": true, "sidebus.v1.Rule.warnings": true}

func appendMessage(to []byte, m protoreflect.Message) []byte {
	to = append(to, '{')
	isFirst := true
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if (field.HasPresence() || field.IsList() && onlyIfAny[field.FullName()]) && !m.Has(field) {
			continue
		}
		if !isFirst {
			to = append(to, ',')
		}
		isFirst = false
		to = append(appendString(to, field.JSONName()), ':')
		to = appendField(to, m.Get(field), field)
	}
	return append(to, '}')
}

func appendField(to []byte, value protoreflect.Value, field protoreflect.FieldDescriptor) []byte {
	switch {
	case isRawField(field):
		return append(to, value.String()...)
	case field.IsMap():
		return appendMap(to, value.Map())
	case field.IsList():
		to = append(to, '[')
		for i := range value.List().Len() {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendSingle(to, value.List().Get(i), field)
		}
		return append(to, ']')
	default:
		return appendSingle(to, value, field)
	}
}

// appendMap appends a map of properties, or of texts, sorted by name so that equal messages have equal JSON.
func appendMap(to []byte, entries protoreflect.Map) []byte {
	names := make([]string, 0, entries.Len())
	entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		names = append(names, key.String())
		return true
	})
	slices.Sort(names)
	to = append(to, '{')
	for i, name := range names {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendString(to, name), ':')
		value := entries.Get(protoreflect.ValueOfString(name).MapKey())
		if text, isText := value.Interface().(string); isText {
			to = appendString(to, text)
		} else {
			to = appendProperty(to, value.Message().Interface().(*sidebusv1.Value))
		}
	}
	return append(to, '}')
}

func appendSingle(to []byte, value protoreflect.Value, field protoreflect.FieldDescriptor) []byte {
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch m := value.Message().Interface().(type) {
		case *durationpb.Duration:
			to = appendSeconds(append(to, '"'), m.GetSeconds(), int64(m.GetNanos()), 9)
			return append(to, '"')
		case *timestamppb.Timestamp:
			return appendInstant(to, m.AsTime())
		default:
			return appendMessage(to, value.Message())
		}
	case protoreflect.BoolKind:
		return strconv.AppendBool(to, value.Bool())
	case protoreflect.EnumKind:
		if v := field.Enum().Values().ByNumber(value.Enum()); v != nil {
			return appendString(to, string(v.Name()))
		}
		return strconv.AppendInt(to, int64(value.Enum()), 10)
	case protoreflect.Int32Kind:
		return strconv.AppendInt(to, value.Int(), 10)
	case protoreflect.Int64Kind:
		return append(strconv.AppendInt(append(to, '"'), value.Int(), 10), '"')
	case protoreflect.BytesKind:
		return appendBase64(to, value.Bytes())
	default:
		return appendString(to, value.String())
	}
}

func appendBase64(to, octets []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(to, '"'), octets), '"')
}

// appendInstant appends an instant in RFC 3339, in UTC, with 0, 3, 6 or 9 decimal places, as proto3 JSON does.
func appendInstant(to []byte, at time.Time) []byte {
	layout := `"2006-01-02T15:04:05.000000000Z"`
	switch n := at.Nanosecond(); {
	case n == 0:
		layout = `"2006-01-02T15:04:05Z"`
	case n%1_000_000 == 0:
		layout = `"2006-01-02T15:04:05.000Z"`
	case n%1_000 == 0:
		layout = `"2006-01-02T15:04:05.000000Z"`
	}
	return at.UTC().AppendFormat(to, layout)
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string and escapes only what JSON requires.
func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\n':
			to = append(to, '\\', 'n')
		case '\r':
			to = append(to, '\\', 'r')
		case '\t':
			to = append(to, '\\', 't')
		default:
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(to, s[start:]...), '"')
}

// oneRune returns the only character of a text.
func oneRune(s string) (rune, bool) {
	r, size := utf8.DecodeRuneInString(s)
	return r, s != "" && size == len(s)
}
