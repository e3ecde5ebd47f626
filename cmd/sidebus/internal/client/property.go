package client

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// kindSuffix is what the fields of Value have after the name of their type.
const kindSuffix = "_value"

var valueFields = (&sidebusv1.Value{}).ProtoReflect().Descriptor().Fields()

// Property reads an application property, "name=value" or "name:type=value" with a type of the API such as int32 or
// uuid. Without a type the value is read as in the API's JSON: true, false, null, a whole number as int64, one with a
// fraction as double, a text in double quotes; anything else is a text as it stands.
func Property(text string) (name string, value *sidebusv1.Value, err error) {
	name, given, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", nil, fmt.Errorf("%q must be name=value or name:type=value", text)
	}
	if colon := strings.LastIndexByte(name, ':'); colon > 0 {
		if field := valueFields.ByName(protoreflect.Name(name[colon+1:] + kindSuffix)); field != nil {
			value, err := typed(field, given)
			if err != nil {
				return "", nil, fmt.Errorf("%q: %w", text, err)
			}
			return name[:colon], value, nil
		}
		return "", nil, fmt.Errorf(
			"%q has no known type after the colon; the types are %s", text, strings.Join(types(), ", "),
		)
	}
	return name, plain(given), nil
}

func types() []string {
	var names []string
	for i := range valueFields.Len() {
		names = append(names, strings.TrimSuffix(string(valueFields.Get(i).Name()), kindSuffix))
	}
	return names
}

func plain(text string) *sidebusv1.Value {
	asText := &sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{StringValue: text}}
	if !json.Valid([]byte(text)) || text != strings.TrimSpace(text) {
		return asText
	}
	switch text[0] {
	case 't', 'f':
		return &sidebusv1.Value{Kind: &sidebusv1.Value_BoolValue{BoolValue: text == "true"}}
	case 'n':
		return &sidebusv1.Value{Kind: &sidebusv1.Value_NullValue{}}
	case '"':
		var inner string
		if json.Unmarshal([]byte(text), &inner) == nil {
			asText.Kind = &sidebusv1.Value_StringValue{StringValue: inner}
		}
	case '{', '[':
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return &sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{Int64Value: n}}
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".eE") {
			return &sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: f}}
		}
	}
	return asText
}

// typed reads the value of a type. Whether it is in the type's bounds beyond those of the field says the sidecar.
func typed(field protoreflect.FieldDescriptor, text string) (*sidebusv1.Value, error) {
	read, err := readTyped(field, text)
	if err != nil {
		return nil, fmt.Errorf("the value is not of type %s", strings.TrimSuffix(string(field.Name()), kindSuffix))
	}
	value := &sidebusv1.Value{}
	value.ProtoReflect().Set(field, read)
	return value, nil
}

var errNoValue = errors.New("not a value of the type")

func readTyped(field protoreflect.FieldDescriptor, text string) (protoreflect.Value, error) {
	switch field.Name() {
	case "char_value":
		r, size := utf8.DecodeRuneInString(text)
		if text == "" || size != len(text) {
			return protoreflect.Value{}, errNoValue
		}
		return protoreflect.ValueOfUint32(uint32(r)), nil
	case "timespan_value":
		d, err := duration.Wire(text)
		if err != nil || d.GetSeconds() > math.MaxInt64/ticksPerSecond || d.GetNanos()%ticksNanos != 0 {
			return protoreflect.Value{}, errNoValue
		}
		return protoreflect.ValueOfInt64(d.GetSeconds()*ticksPerSecond + int64(d.GetNanos()/ticksNanos)), nil
	}
	switch field.Kind() {
	case protoreflect.EnumKind: // null
		if text != "" && text != "null" {
			return protoreflect.Value{}, errNoValue
		}
		return protoreflect.ValueOfEnum(0), nil
	case protoreflect.BoolKind:
		if text != "true" && text != "false" {
			return protoreflect.Value{}, errNoValue
		}
		return protoreflect.ValueOfBool(text == "true"), nil
	case protoreflect.BytesKind:
		octets, err := base64.StdEncoding.DecodeString(text)
		return protoreflect.ValueOfBytes(octets), err
	case protoreflect.Sint32Kind:
		n, err := strconv.ParseInt(text, 10, 32)
		return protoreflect.ValueOfInt32(int32(n)), err
	case protoreflect.Sint64Kind:
		n, err := strconv.ParseInt(text, 10, 64)
		return protoreflect.ValueOfInt64(n), err
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), err
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		return protoreflect.ValueOfUint64(n), err
	case protoreflect.FloatKind:
		f, err := strconv.ParseFloat(text, 32)
		return protoreflect.ValueOfFloat32(float32(f)), err
	case protoreflect.DoubleKind:
		f, err := strconv.ParseFloat(text, 64)
		return protoreflect.ValueOfFloat64(f), err
	default:
		return protoreflect.ValueOfString(text), nil
	}
}

// The resolution of a timespan.
const (
	ticksNanos     = 100
	ticksPerSecond = 10_000_000
)
