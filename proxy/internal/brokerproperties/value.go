package brokerproperties

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

// parseValue parses an application property from a header: a quoted JSON string, or a bare number, boolean or null
// (REST-1). Any other text is a string, so that clients need to quote only what parses as another type.
func parseValue(text string) (semantics.Value, error) {
	switch {
	case strings.HasPrefix(text, `"`):
		s, err := parseString([]byte(text))
		if err != nil {
			return semantics.Value{}, errors.New("begins with a quotation mark and is not a JSON string")
		}
		return semantics.String(s), nil
	case isNumber(text), text == "true", text == "false", text == "null":
		return parseJSONValue([]byte(text))
	default:
		return semantics.String(text), nil
	}
}

// parseJSONValue parses an application property from JSON: a string, a boolean, null, or a number, which is an int64 if
// it has no fraction and a double otherwise.
func parseJSONValue(raw []byte) (semantics.Value, error) {
	text := string(raw)
	switch {
	case text == "null":
		return semantics.Null(), nil
	case text == "true" || text == "false":
		return semantics.Bool(text == "true"), nil
	case strings.HasPrefix(text, `"`):
		s, err := parseString(raw)
		return semantics.String(s), err
	case !isNumber(text):
		return semantics.Value{}, errors.New("must be a string, number, boolean or null")
	case strings.ContainsAny(text, ".eE"):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return semantics.Value{}, errors.New("does not fit a double")
		}
		return semantics.Double(f), nil
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return semantics.Int64(n), nil
		}
		n, err := strconv.ParseUint(text, 10, 64) // a uint64 that was written can be sent again
		if err != nil {
			return semantics.Value{}, errors.New("does not fit 64 bits; put it in quotes")
		}
		return semantics.Uint64(n), nil
	}
}

// parseString parses a JSON string. Unlike encoding/json it rejects invalid UTF-8 and unpaired surrogates.
func parseString(raw []byte) (string, error) {
	var s string
	if !utf8.Valid(raw) || json.Unmarshal(raw, &s) != nil || raw[0] != '"' || hasHalfPair(raw) {
		return "", errors.New("must be a string")
	}
	return s, nil
}

// hasHalfPair reports whether a valid JSON string has an escaped surrogate without its other half.
func hasHalfPair(raw []byte) bool {
	unit := func(at int) rune {
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if first := unit(i); utf16.IsSurrogate(first) {
			if utf16.DecodeRune(first, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 6
		}
		i++ // skips the escaped character, which may be a backslash
	}
	return false
}

func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

// appendValue is the opposite of parseValue. A type that JSON does not have is a string: its canonical text, bytes in
// base64.
func appendValue(to []byte, v semantics.Value) []byte {
	switch v.Type() {
	case semantics.TypeNull:
		return append(to, "null"...)
	case semantics.TypeBool:
		return strconv.AppendBool(to, v.Bool())
	case semantics.TypeByte, semantics.TypeSByte, semantics.TypeInt16, semantics.TypeUint16, semantics.TypeInt32,
		semantics.TypeUint32, semantics.TypeInt64:
		return strconv.AppendInt(to, v.Int(), 10)
	case semantics.TypeUint64:
		return strconv.AppendUint(to, v.Uint(), 10)
	case semantics.TypeFloat:
		return appendDouble(to, v.Float(), 32)
	case semantics.TypeDouble:
		return appendDouble(to, v.Float(), 64)
	case semantics.TypeDecimal:
		if isNumber(v.Text()) {
			return append(to, v.Text()...)
		}
		return appendString(to, v.Text())
	case semantics.TypeChar:
		return appendString(to, string(rune(v.Int()))) //nolint:gosec // a code point
	case semantics.TypeTimeSpan:
		return appendString(to, formatTicks(v.Int()))
	case semantics.TypeBytes:
		return appendString(to, base64.StdEncoding.EncodeToString([]byte(v.Text())))
	default:
		return appendString(to, v.Text())
	}
}

// appendDouble appends a number with a fraction or an exponent, so that it is parsed as a double again.
func appendDouble(to []byte, f float64, bits int) []byte {
	number := wirejson.AppendFloat(nil, f, bits)
	if !bytes.ContainsAny(number, `.e"`) {
		number = append(number, ".0"...)
	}
	return append(to, number...)
}

// appendString appends a JSON string in ASCII without control characters, so that any text can be in a header
// (REST-12).
func appendString(to []byte, s string) []byte {
	const hex = "0123456789abcdef"
	unit := func(u rune) {
		to = append(to, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	to = append(to, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			to = append(to, '\\', byte(r))
		case r >= ' ' && r < 0x7f:
			to = append(to, byte(r))
		case r > 0xffff:
			r -= 0x10000
			unit(0xd800 + r>>10)
			unit(0xdc00 + r&0x3ff)
		default:
			unit(r)
		}
	}
	return append(to, '"')
}
