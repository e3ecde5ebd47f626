package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Append adds an encoded value to b, in the shortest form. It panics for a Go type that is not one of this package.
func Append(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, codeNull)
	case bool:
		if v {
			return append(b, codeTrue)
		}
		return append(b, codeFalse)
	case uint32:
		switch {
		case v == 0:
			return append(b, codeUint0)
		case v <= math.MaxUint8:
			return append(b, codeSmallUint, byte(v))
		}
	case uint64:
		switch {
		case v == 0:
			return append(b, codeUlong0)
		case v <= math.MaxUint8:
			return append(b, codeSmallUlng, byte(v))
		}
	case int32:
		if v == int32(int8(v)) {
			return append(b, codeSmallInt, byte(v))
		}
	case int64:
		if v == int64(int8(v)) {
			return append(b, codeSmallLong, byte(v))
		}
	case string:
		if len(v) <= math.MaxUint8 {
			return append(append(b, codeStr8, byte(len(v))), v...)
		}
	case Symbol:
		if len(v) <= math.MaxUint8 {
			return append(append(b, codeSym8, byte(len(v))), v...)
		}
	case []byte:
		if len(v) <= math.MaxUint8 {
			return append(append(b, codeBin8, byte(len(v))), v...)
		}
	case List:
		if len(v) == 0 {
			return append(b, codeList0)
		}
		return appendCompound(b, codeList8, codeList32, len(v), func(b []byte) []byte { return appendAll(b, v) })
	case Map:
		return appendCompound(b, codeMap8, codeMap32, 2*len(v), func(b []byte) []byte {
			for _, p := range v {
				b = Append(Append(b, p.Key), p.Value)
			}
			return b
		})
	case Array:
		return appendCompound(b, codeArray8, codeArray32, len(v), func(b []byte) []byte { return appendArray(b, v) })
	case Described:
		return Append(Append(append(b, codeDescribed), v.Descriptor), v.Value)
	}
	return appendWide(append(b, wideCode(value)), value)
}

func appendAll(b []byte, values []any) []byte {
	for _, v := range values {
		b = Append(b, v)
	}
	return b
}

// compoundHead is the length of the code, size and count of a compound value with four bytes each.
const compoundHead = 1 + 4 + 4

// appendCompound adds a list, map or array of count values. It writes the long form first and shortens it if it can.
func appendCompound(b []byte, short, wide byte, count int, values func([]byte) []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, compoundHead)...)
	b = values(b)
	size := len(b) - start - compoundHead
	if size+1 <= math.MaxUint8 && count <= math.MaxUint8 {
		b[start], b[start+1], b[start+2] = short, byte(size+1), byte(count)
		copy(b[start+3:], b[start+compoundHead:])
		return b[:start+3+size]
	}
	b[start] = wide
	binary.BigEndian.PutUint32(b[start+1:], uint32(size+4))
	binary.BigEndian.PutUint32(b[start+5:], uint32(count))
	return b
}

// appendArray adds the constructor that the values of an array share, and the values.
func appendArray(b []byte, values Array) []byte {
	if len(values) == 0 {
		return append(b, codeNull)
	}
	first := values[0]
	if described, ok := first.(Described); ok {
		b = Append(append(b, codeDescribed), described.Descriptor)
		first = described.Value
	}
	code := wideCode(first)
	b = append(b, code)
	for _, v := range values {
		if described, ok := v.(Described); ok {
			v = described.Value
		}
		if own := wideCode(v); own != code {
			panic(fmt.Sprintf("codec: an array has %T among %T", v, first))
		}
		b = appendWide(b, v)
	}
	return b
}

// wideCode returns the code of the form of a value that every value of its type has.
func wideCode(value any) byte {
	switch value.(type) {
	case nil:
		return codeNull
	case bool:
		return codeBool
	case uint8:
		return codeUbyte
	case int8:
		return codeByte
	case uint16:
		return codeUshort
	case int16:
		return codeShort
	case uint32:
		return codeUint
	case int32:
		return codeInt
	case float32:
		return codeFloat
	case Char:
		return codeChar
	case Decimal32:
		return codeDec32
	case uint64:
		return codeUlong
	case int64:
		return codeLong
	case float64:
		return codeDouble
	case Timestamp:
		return codeTimestamp
	case Decimal64:
		return codeDec64
	case Decimal128:
		return codeDec128
	case UUID:
		return codeUUID
	case []byte:
		return codeBin32
	case string:
		return codeStr32
	case Symbol:
		return codeSym32
	case List:
		return codeList32
	case Map:
		return codeMap32
	case Array:
		return codeArray32
	default:
		panic(fmt.Sprintf("codec: %T is not a type of AMQP", value))
	}
}

// appendWide adds a value without its code, in the form of wideCode.
func appendWide(b []byte, value any) []byte {
	be := binary.BigEndian
	switch v := value.(type) {
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case uint8:
		return append(b, v)
	case int8:
		return append(b, byte(v))
	case uint16:
		return be.AppendUint16(b, v)
	case int16:
		return be.AppendUint16(b, uint16(v))
	case uint32:
		return be.AppendUint32(b, v)
	case int32:
		return be.AppendUint32(b, uint32(v))
	case float32:
		return be.AppendUint32(b, math.Float32bits(v))
	case Char:
		return be.AppendUint32(b, uint32(v))
	case Decimal32:
		return append(b, v[:]...)
	case uint64:
		return be.AppendUint64(b, v)
	case int64:
		return be.AppendUint64(b, uint64(v))
	case float64:
		return be.AppendUint64(b, math.Float64bits(v))
	case Timestamp:
		return be.AppendUint64(b, uint64(v))
	case Decimal64:
		return append(b, v[:]...)
	case Decimal128:
		return append(b, v[:]...)
	case UUID:
		return append(b, v[:]...)
	case []byte:
		return append(be.AppendUint32(b, uint32(len(v))), v...)
	case string:
		return append(be.AppendUint32(b, uint32(len(v))), v...)
	case Symbol:
		return append(be.AppendUint32(b, uint32(len(v))), v...)
	case List:
		return appendWideCompound(b, len(v), func(b []byte) []byte { return appendAll(b, v) })
	case Map:
		return appendWideCompound(b, 2*len(v), func(b []byte) []byte {
			for _, p := range v {
				b = Append(Append(b, p.Key), p.Value)
			}
			return b
		})
	case Array:
		return appendWideCompound(b, len(v), func(b []byte) []byte { return appendArray(b, v) })
	default: // null
		return b
	}
}

// appendWideCompound adds a list, map or array without its code.
func appendWideCompound(b []byte, count int, values func([]byte) []byte) []byte {
	start := len(b)
	b = values(append(b, make([]byte, compoundHead-1)...))
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	binary.BigEndian.PutUint32(b[start+4:], uint32(count))
	return b
}
