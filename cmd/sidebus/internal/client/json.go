package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// JSON gives a message as the HTTP API writes it, in one line. It is no protojson, which knows neither the short form of
// properties nor the field json; a test compares it with what a sidecar answers.
func JSON(m proto.Message) []byte {
	var line bytes.Buffer
	written := appendMessage(nil, m.ProtoReflect())
	if json.Compact(&line, written) != nil { // a body of another kind than its field says
		return written
	}
	return line.Bytes()
}

func appendMessage(to []byte, m protoreflect.Message) []byte {
	to = append(to, '{')
	isFirst := true
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.HasPresence() && !m.Has(field) {
			continue
		}
		if !isFirst {
			to = append(to, ',')
		}
		isFirst = false
		to = append(appendText(to, field.JSONName()), ':')
		to = appendField(to, m.Get(field), field)
	}
	return append(to, '}')
}

func appendField(to []byte, value protoreflect.Value, field protoreflect.FieldDescriptor) []byte {
	switch {
	case field.Name() == "json": // the value itself
		return append(to, value.String()...)
	case field.IsMap():
		return appendProperties(to, value.Map())
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

// appendProperties writes the only kind of map there is.
func appendProperties(to []byte, entries protoreflect.Map) []byte {
	values := map[string]*sidebusv1.Value{}
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		values[key.String()], _ = value.Message().Interface().(*sidebusv1.Value)
		return true
	})
	to = append(to, '{')
	for i, name := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendProperty(append(appendText(to, name), ':'), values[name])
	}
	return append(to, '}')
}

func appendSingle(to []byte, value protoreflect.Value, field protoreflect.FieldDescriptor) []byte {
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch m := value.Message().Interface().(type) {
		case *durationpb.Duration:
			return appendSeconds(to, m.GetSeconds(), int64(m.GetNanos()))
		case *timestamppb.Timestamp:
			return appendInstant(to, m.AsTime())
		default:
			return appendMessage(to, value.Message())
		}
	case protoreflect.BoolKind:
		return strconv.AppendBool(to, value.Bool())
	case protoreflect.EnumKind:
		if v := field.Enum().Values().ByNumber(value.Enum()); v != nil {
			return appendText(to, string(v.Name()))
		}
		return strconv.AppendInt(to, int64(value.Enum()), 10)
	case protoreflect.Int32Kind:
		return strconv.AppendInt(to, value.Int(), 10)
	case protoreflect.Int64Kind:
		return append(strconv.AppendInt(append(to, '"'), value.Int(), 10), '"')
	case protoreflect.BytesKind:
		return appendBase64(to, value.Bytes())
	default:
		return appendText(to, value.String())
	}
}

func appendText(to []byte, text string) []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) != nil {
		return append(to, `""`...) // a string can always be written
	}
	return append(to, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

func appendBase64(to, octets []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(to, '"'), octets), '"')
}

// appendInstant writes RFC 3339 in UTC with 0, 3, 6 or 9 decimal places.
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

// appendSeconds writes a duration as "90s" or "0.5s".
func appendSeconds(to []byte, seconds, nanos int64) []byte {
	return append(append(append(to, '"'), Seconds(seconds, nanos)...), '"')
}

// Seconds gives a duration as the API writes it. Both parts have the same sign.
func Seconds(seconds, nanos int64) string {
	text := strconv.FormatInt(seconds, 10)
	if nanos < 0 {
		nanos = -nanos
		if seconds == 0 {
			text = "-0"
		}
	}
	if nanos != 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(int64(time.Second)+nanos, 10)[1:], "0")
	}
	return text + "s"
}
