package wirejson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/semantics"
)

func decodeScalar(raw []byte, field protoreflect.FieldDescriptor, at string) (protoreflect.Value, *semantics.Error) {
	var none protoreflect.Value
	switch field.Kind() {
	case protoreflect.BoolKind:
		switch string(raw) {
		case "true":
			return protoreflect.ValueOfBool(true), nil
		case "false":
			return protoreflect.ValueOfBool(false), nil
		}
		return none, BadValue(at, "must be true or false")
	case protoreflect.StringKind:
		text, ok := unquote(raw)
		if !ok {
			return none, BadValue(at, "must be a string")
		}
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BytesKind:
		octets, ok := decodeBase64(raw)
		if !ok {
			return none, BadValue(at, "must be a string in base64")
		}
		return protoreflect.ValueOfBytes(octets), nil
	case protoreflect.EnumKind:
		return decodeEnum(raw, field.Enum().Values(), at)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		n, err := decodeInteger(raw, 32, at)
		return protoreflect.ValueOfInt32(int32(n)), err //nolint:gosec // decodeInteger has checked the width
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		n, err := decodeInteger(raw, 64, at)
		return protoreflect.ValueOfInt64(n), err
	default:
		return none, BadValue(at, "cannot be read")
	}
}

func decodeEnum(
	raw []byte, values protoreflect.EnumValueDescriptors, at string,
) (protoreflect.Value, *semantics.Error) {
	text, isText := unquote(raw)
	names := make([]string, values.Len())
	for i := range names {
		v := values.Get(i)
		names[i] = string(v.Name())
		if isText && text == names[i] || !isText && string(raw) == strconv.Itoa(int(v.Number())) {
			return protoreflect.ValueOfEnum(v.Number()), nil
		}
	}
	return protoreflect.Value{}, BadValue(at, "must be one of %s", strings.Join(names, ", "))
}

// decodeInteger decodes a whole number, from a number or a string that holds one.
func decodeInteger(raw []byte, bits int, at string) (int64, *semantics.Error) {
	text := string(raw)
	if inner, ok := unquote(raw); ok {
		text = inner
	}
	if n, err := parseInt(text, bits); err == nil {
		return n, nil
	}
	isNumber := len(text) <= 64 && text != "" && (text[0] == '-' || isDigit(text[0])) && json.Valid([]byte(text))
	exponent := strings.IndexAny(text, "eE")
	if !isNumber || exponent >= 0 && len(text)-exponent > 5 { // bounds the exponent, so that parsing is fast
		return 0, BadValue(at, "must be a whole number")
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok || !exact.IsInt() {
		return 0, BadValue(at, "must be a whole number")
	}
	if exact.Num().BitLen() >= bits {
		return 0, Refused(semantics.ArgumentOutOfRange, at, "does not fit %d bits", bits)
	}
	return exact.Num().Int64(), nil
}

// parseInt is strconv.ParseInt without the plus sign, which JSON does not permit.
func parseInt(text string, bits int) (int64, error) {
	if strings.HasPrefix(text, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, bits)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// decodeBase64 decodes base64, in the standard or the URL alphabet, with or without padding.
func decodeBase64(raw []byte) ([]byte, bool) {
	if raw[0] != '"' {
		return nil, false
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // an escaped slash
		inner, ok := unquote(raw)
		if !ok {
			return nil, false
		}
		text = []byte(inner)
	}
	encoding := base64.StdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.URLEncoding
	}
	if len(text)%4 != 0 {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	if slices.Contains(text, '\n') || slices.Contains(text, '\r') { // the library skips them
		return nil, false
	}
	octets := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Decode(octets, text)
	return octets[:n], err == nil
}
