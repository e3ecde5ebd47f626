package semantics

import (
	"math"
	"strings"
	"time"
)

// ValueType is the type of an application property (MSG-12).
type ValueType uint8

// The property types of MSG-12. Their String is the name used in JSON.
const (
	TypeNull ValueType = iota
	TypeString
	TypeBool
	TypeByte
	TypeSByte
	TypeChar
	TypeInt16
	TypeUint16
	TypeInt32
	TypeUint32
	TypeInt64
	TypeUint64
	TypeFloat
	TypeDouble
	TypeDecimal
	TypeUUID
	TypeURI
	TypeDateTime
	TypeDateTimeOffset
	TypeTimeSpan
	TypeBytes
)

var valueTypeNames = [...]string{
	"null", "string", "bool", "byte", "sbyte", "char", "int16", "uint16", "int32", "uint32", "int64", "uint64",
	"float", "double", "decimal", "uuid", "uri", "datetime", "datetimeoffset", "timespan", "bytes",
}

// String returns the name of the type as JSON shows it, for example "int32".
func (t ValueType) String() string {
	if int(t) < len(valueTypeNames) {
		return valueTypeNames[t]
	}
	return "unknown"
}

// Value is one application property with its exact type. Values compare with ==, except that a NaN equals itself
// when its bits are the same. The zero Value is null.
type Value struct {
	typ ValueType
	num uint64 // integers, bool, char, timespan ticks; float bits
	str string // text forms and bytes
}

// Type returns the type of the value.
func (v Value) Type() ValueType { return v.typ }

// Int returns the number of an integer, char or bool (0 or 1), or the ticks of 100 ns of a timespan.
func (v Value) Int() int64 { return int64(v.num) } //nolint:gosec // two's complement is the storage form

// Uint returns the number of a uint64.
func (v Value) Uint() uint64 { return v.num }

// Float returns the number of a float or double.
func (v Value) Float() float64 { return math.Float64frombits(v.num) }

// Bool returns the truth of a bool.
func (v Value) Bool() bool { return v.num != 0 }

// Text returns the text of a string, uri, decimal, uuid, datetime or datetimeoffset, and the octets of bytes.
func (v Value) Text() string { return v.str }

// Null is the null value.
func Null() Value { return Value{} }

// String makes a string value.
func String(s string) Value { return Value{typ: TypeString, str: s} }

// Bool makes a bool value.
func Bool(b bool) Value {
	if b {
		return Value{typ: TypeBool, num: 1}
	}
	return Value{typ: TypeBool}
}

// Int64 makes an int64 value.
func Int64(n int64) Value { return Value{typ: TypeInt64, num: uint64(n)} } //nolint:gosec // two's complement

// Double makes a double value.
func Double(f float64) Value { return Value{typ: TypeDouble, num: math.Float64bits(f)} }

// Bytes makes a binary value.
func Bytes(b []byte) Value { return Value{typ: TypeBytes, str: string(b)} }

// integer bounds by type; a char is any Unicode code point that UTF-16 can hold.
var intBounds = map[ValueType][2]int64{
	TypeByte: {0, math.MaxUint8}, TypeSByte: {math.MinInt8, math.MaxInt8}, TypeChar: {0, 0x10FFFF},
	TypeInt16: {math.MinInt16, math.MaxInt16}, TypeUint16: {0, math.MaxUint16},
	TypeInt32: {math.MinInt32, math.MaxInt32}, TypeUint32: {0, math.MaxUint32},
	TypeInt64: {math.MinInt64, math.MaxInt64}, TypeTimeSpan: {math.MinInt64, math.MaxInt64},
}

// IntegerOf makes a value of one of the integer types, char, or timespan (in ticks of 100 ns). A number outside the
// type, or another type, is INVALID_ARGUMENT.
func IntegerOf(t ValueType, n int64) (Value, error) {
	bounds, ok := intBounds[t]
	if !ok {
		return Value{}, Errorf(InvalidArgument, "property type %s does not hold an integer", t)
	}
	if n < bounds[0] || n > bounds[1] {
		return Value{}, Errorf(
			InvalidArgument, "property value %d does not fit %s (%d to %d)", n, t, bounds[0], bounds[1],
		)
	}
	return Value{typ: t, num: uint64(n)}, nil //nolint:gosec // two's complement
}

// Uint64 makes a uint64 value.
func Uint64(n uint64) Value { return Value{typ: TypeUint64, num: n} }

// Float makes a 32-bit float value. The number is rounded to 32 bits.
func Float(f float64) Value {
	return Value{typ: TypeFloat, num: math.Float64bits(float64(float32(f)))}
}

// TextOf makes a value of one of the types that are kept as text: string, uri, decimal, uuid, datetime,
// datetimeoffset. The text is checked and brought to its canonical form; a text that does not fit, or another type,
// is INVALID_ARGUMENT.
func TextOf(t ValueType, s string) (Value, error) {
	switch t {
	case TypeString, TypeURI:
		return Value{typ: t, str: s}, nil
	case TypeUUID:
		u, err := ParseLockToken(s)
		if err != nil {
			return Value{}, Errorf(InvalidArgument, "property value %q is not a uuid", Shorten(s))
		}
		return Value{typ: t, str: u.String()}, nil
	case TypeDecimal:
		if !isDecimal(s) {
			return Value{}, Errorf(InvalidArgument, "property value %q is not a decimal number", Shorten(s))
		}
		return Value{typ: t, str: s}, nil
	case TypeDateTime, TypeDateTimeOffset:
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return Value{}, Errorf(InvalidArgument, "property value %q is not an RFC 3339 instant", Shorten(s))
		}
		if t == TypeDateTime {
			at = at.UTC()
		}
		text := at.Format(time.RFC3339Nano)
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil { // its offset leads to the year 10000, or is a day
			return Value{}, Errorf(
				InvalidArgument, "property value %q is not an instant of the years 0 to 9999 in UTC", Shorten(s),
			)
		}
		return Value{typ: t, str: text}, nil
	default:
		return Value{}, Errorf(InvalidArgument, "property type %s is not kept as text", t)
	}
}

// Clone returns the value with memory of its own.
func (v Value) Clone() Value {
	v.str = strings.Clone(v.str)
	return v
}

// Size is the number of bytes the value counts for (MSG-15, MSG-20): text and bytes their length, the rest the
// width of their type.
func (v Value) Size() int {
	switch v.typ {
	case TypeNull:
		return 0
	case TypeBool, TypeByte, TypeSByte:
		return 1
	case TypeInt16, TypeUint16:
		return 2
	case TypeChar, TypeInt32, TypeUint32, TypeFloat:
		return 4
	case TypeInt64, TypeUint64, TypeDouble, TypeTimeSpan:
		return 8
	case TypeUUID, TypeDecimal:
		return 16
	case TypeDateTime, TypeDateTimeOffset:
		return 8
	case TypeString, TypeURI, TypeBytes:
		return len(v.str)
	default:
		return len(v.str)
	}
}

// isDecimal accepts an optional sign, digits and one optional point, at most 64 characters.
func isDecimal(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	digits, points := 0, 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			points++
		default:
			return false
		}
	}
	return digits > 0 && points <= 1
}
