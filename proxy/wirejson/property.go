package wirejson

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// kindSuffix is the suffix of the fields of Value, after the name of their type.
const kindSuffix = "_value"

// decodeProperty decodes a property: string, bool, number (without a fraction an int64, otherwise a double) or null, or
// an object with type and value for any type (MSG-13).
func decodeProperty(s *scanner, into *sidebusv1.Value, at string) *semantics.Error {
	switch c := s.peek(); {
	case c == 'n':
		s.value()
		into.Kind = &sidebusv1.Value_NullValue{}
		return nil
	case c == '"':
		return decodeTyped(s.value(), "string", into, at)
	case c == 't' || c == 'f':
		return decodeTyped(s.value(), "bool", into, at)
	case c == '{':
		return decodeTypedObject(s, into, at)
	case c == '[':
		return BadValue(at, "cannot be a list")
	default:
		number := s.value()
		if bytes.ContainsAny(number, ".eE") {
			return decodeTyped(number, "double", into, at)
		}
		return decodeTyped(number, "int64", into, at)
	}
}

func decodeTypedObject(s *scanner, into *sidebusv1.Value, at string) *semantics.Error {
	s.open('{')
	typ, value := "", []byte(nil)
	for s.next('}') {
		switch name := s.key(); name {
		case "type":
			text, ok := unquote(s.value())
			if !ok || text == "" || typ != "" {
				return BadValue(at, "must have one type, a string")
			}
			typ = text
		case "value":
			if value != nil {
				return BadValue(at, "must have one value")
			}
			value = s.value()
		default:
			return BadValue(at, "has %q; a typed property has type and value only", name)
		}
	}
	isNull := value == nil || string(value) == "null"
	switch {
	case typ == "":
		return BadValue(at, "must have a type")
	case typ == "null" && isNull:
		into.Kind = &sidebusv1.Value_NullValue{}
		return nil
	case value == nil || typ == "null":
		return BadValue(at, "must have a value that fits its type")
	}
	return decodeTyped(value, typ, into, at)
}

// decodeTyped decodes a value of a known type. semantics.IntegerOf checks bounds that are narrower than those of the
// field.
func decodeTyped(raw []byte, typ string, into *sidebusv1.Value, at string) *semantics.Error {
	m := into.ProtoReflect()
	field := m.Descriptor().Fields().ByName(protoreflect.Name(typ + kindSuffix))
	if field == nil {
		return BadValue(at, "has the unknown type %q", typ)
	}
	value, ok := typedValue(raw, typ, field.Kind())
	if !ok {
		return BadValue(at, "has a value that is no %s", typ)
	}
	m.Set(field, value)
	return nil
}

func typedValue(raw []byte, typ string, kind protoreflect.Kind) (value protoreflect.Value, ok bool) {
	text, isText := unquote(raw)
	if !isText {
		text = string(raw)
	}
	isNumber := raw[0] == '-' || isDigit(raw[0])
	switch {
	case typ == "char":
		r, isOne := oneRune(text)
		if isText {
			return protoreflect.ValueOfUint32(uint32(r)), isOne //nolint:gosec // a code point
		}
		n, err := strconv.ParseUint(text, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), err == nil
	case typ == "timespan":
		ticks, fits := parseTicks(text)
		return protoreflect.ValueOfInt64(ticks), isText && fits
	case typ == "decimal":
		return protoreflect.ValueOfString(text), isText || isNumber
	}
	switch kind {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(text == "true"), !isText && (text == "true" || text == "false")
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), isText
	case protoreflect.BytesKind:
		octets, fits := decodeBase64(raw)
		return protoreflect.ValueOfBytes(octets), fits
	case protoreflect.Sint32Kind:
		n, err := parseInt(text, 32)
		return protoreflect.ValueOfInt32(int32(n)), err == nil
	case protoreflect.Sint64Kind:
		n, err := parseInt(text, 64)
		return protoreflect.ValueOfInt64(n), err == nil
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), err == nil
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		return protoreflect.ValueOfUint64(n), err == nil
	case protoreflect.FloatKind:
		f, fits := parseFloat(text, isText, 32)
		return protoreflect.ValueOfFloat32(float32(f)), fits
	case protoreflect.DoubleKind:
		f, fits := parseFloat(text, isText, 64)
		return protoreflect.ValueOfFloat64(f), fits
	default:
		return protoreflect.Value{}, false
	}
}

// parseFloat parses a JSON number, a string that holds one, or a string for a value that JSON has no number for.
func parseFloat(text string, isText bool, bits int) (float64, bool) {
	switch {
	case isText && text == "NaN":
		return math.NaN(), true
	case isText && text == "Infinity":
		return math.Inf(1), true
	case isText && text == "-Infinity":
		return math.Inf(-1), true
	case text == "" || text[0] != '-' && !isDigit(text[0]) || !json.Valid([]byte(text)):
		return 0, false
	}
	f, err := strconv.ParseFloat(text, bits)
	return f, err == nil
}

// appendProperty is the opposite of decodeProperty: it appends the short form if that implies the type, otherwise the
// typed form.
func appendProperty(to []byte, v *sidebusv1.Value) []byte {
	switch k := v.GetKind().(type) {
	case *sidebusv1.Value_NullValue, nil:
		return append(to, "null"...)
	case *sidebusv1.Value_StringValue:
		return appendString(to, k.StringValue)
	case *sidebusv1.Value_BoolValue:
		return strconv.AppendBool(to, k.BoolValue)
	case *sidebusv1.Value_Int64Value:
		return strconv.AppendInt(to, k.Int64Value, 10)
	case *sidebusv1.Value_DoubleValue:
		if k.DoubleValue != math.Trunc(k.DoubleValue) && !math.IsNaN(k.DoubleValue) { // Inf equals its Trunc
			return strconv.AppendFloat(to, k.DoubleValue, 'g', -1, 64)
		}
	}
	m := v.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("kind"))
	to = append(to, `{"type":"`...)
	to = append(to, strings.TrimSuffix(string(field.Name()), kindSuffix)...)
	to = append(to, `","value":`...)
	return append(appendTyped(to, v, m.Get(field), field.Kind()), '}')
}

func appendTyped(to []byte, v *sidebusv1.Value, value protoreflect.Value, kind protoreflect.Kind) []byte {
	switch k := v.GetKind().(type) {
	case *sidebusv1.Value_CharValue:
		if r := rune(k.CharValue); utf8.ValidRune(r) { //nolint:gosec // a code point
			return appendString(to, string(r))
		}
		return strconv.AppendUint(to, uint64(k.CharValue), 10) // an unpaired surrogate, which is not valid UTF-8
	case *sidebusv1.Value_TimespanValue:
		to = appendSeconds(append(to, '"'), k.TimespanValue/ticksPerSecond, k.TimespanValue%ticksPerSecond, 7)
		return append(to, '"')
	}
	switch kind {
	case protoreflect.BytesKind:
		return appendBase64(to, value.Bytes())
	case protoreflect.Sint32Kind:
		return strconv.AppendInt(to, value.Int(), 10)
	case protoreflect.Uint32Kind:
		return strconv.AppendUint(to, value.Uint(), 10)
	case protoreflect.Uint64Kind:
		return append(strconv.AppendUint(append(to, '"'), value.Uint(), 10), '"')
	case protoreflect.FloatKind:
		return AppendFloat(to, value.Float(), 32)
	case protoreflect.DoubleKind:
		return AppendFloat(to, value.Float(), 64)
	default:
		return appendString(to, value.String())
	}
}

// AppendFloat appends the shortest form of a number, or the string for a number that JSON does not have. The form does
// not show whether a whole number is a float.
func AppendFloat(to []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(to, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(to, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(to, `"-Infinity"`...)
	default:
		return strconv.AppendFloat(to, f, 'g', -1, bits)
	}
}
