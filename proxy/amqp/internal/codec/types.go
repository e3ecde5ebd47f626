// Package codec reads and writes the type system of AMQP 1.0 (OASIS part 1). Values are Go values: nil, bool, the sized
// integers and floats, string, []byte, and the types of this package for what Go does not have. Decoding is bounded by
// the size of what is decoded: neither a count nor a nesting makes it allocate more than in proportion.
package codec

// The types that Go does not have.
type (
	// Symbol is a name from a constrained domain, ASCII.
	Symbol string
	// Char is one Unicode character.
	Char rune
	// Timestamp is in milliseconds since 1970.
	Timestamp int64
	// UUID is in the order of RFC 4122.
	UUID [16]byte
	// Decimal32 is as it stands on the wire.
	Decimal32 [4]byte
	// Decimal64 is as Decimal32.
	Decimal64 [8]byte
	// Decimal128 is as Decimal32.
	Decimal128 [16]byte
	// List is a list of values of any type.
	List []any
	// Array is a list of values of one type. An empty one is written as an array of nulls.
	Array []any
	// Map keeps the order and the types of its keys.
	Map []Pair
)

// Pair is an entry of a Map.
type Pair struct{ Key, Value any }

// Entry returns a pair.
func Entry(key, value any) Pair { return Pair{Key: key, Value: value} }

// Named returns a pair whose key is a symbol.
func Named(name Symbol, value any) Pair { return Pair{Key: name, Value: value} }

// Described is a value with a descriptor, which is usually a ulong or a symbol.
type Described struct{ Descriptor, Value any }

// Get returns the value of a key that is a symbol or a string, nil if there is none.
func (m Map) Get(name string) any {
	for _, p := range m {
		if text, ok := Text(p.Key); ok && text == name {
			return p.Value
		}
	}
	return nil
}

// Text returns a string or symbol as text.
func Text(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case Symbol:
		return string(v), true
	default:
		return "", false
	}
}

// Integer returns an integer of any width, if it fits into int64.
func Integer(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint64:
		return int64(v), v <= 1<<63-1
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	default:
		return 0, false
	}
}

// Items returns the values of a list or an array.
func Items(v any) (items []any, ok bool) {
	switch v := v.(type) {
	case List:
		return v, true
	case Array:
		return v, true
	default:
		return nil, false
	}
}

// The format codes (part 1, section 1.6).
const (
	codeDescribed = 0x00
	codeNull      = 0x40
	codeTrue      = 0x41
	codeFalse     = 0x42
	codeUint0     = 0x43
	codeUlong0    = 0x44
	codeList0     = 0x45

	codeUbyte     = 0x50
	codeByte      = 0x51
	codeSmallUint = 0x52
	codeSmallUlng = 0x53
	codeSmallInt  = 0x54
	codeSmallLong = 0x55
	codeBool      = 0x56

	codeUshort = 0x60
	codeShort  = 0x61

	codeUint  = 0x70
	codeInt   = 0x71
	codeFloat = 0x72
	codeChar  = 0x73
	codeDec32 = 0x74

	codeUlong     = 0x80
	codeLong      = 0x81
	codeDouble    = 0x82
	codeTimestamp = 0x83
	codeDec64     = 0x84

	codeDec128 = 0x94
	codeUUID   = 0x98

	codeBin8  = 0xa0
	codeStr8  = 0xa1
	codeSym8  = 0xa3
	codeBin32 = 0xb0
	codeStr32 = 0xb1
	codeSym32 = 0xb3

	codeList8   = 0xc0
	codeMap8    = 0xc1
	codeList32  = 0xd0
	codeMap32   = 0xd1
	codeArray8  = 0xe0
	codeArray32 = 0xf0
)
