package encoded

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
)

// decodeValue reads a sidebus.v1.Value that has one field.
func decodeValue(data []byte) (v semantics.Value, ok bool) {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || number > fieldOf(semantics.TypeBytes) {
		return v, false
	}
	data = data[n:]
	t := semantics.ValueType(number - 1)
	if kind != kindOf(t) {
		return v, false
	}
	var err error
	switch kind {
	case protowire.VarintType:
		var varint uint64
		if varint, n = protowire.ConsumeVarint(data); n >= 0 {
			v, err = integerOf(t, varint)
		}
	case protowire.Fixed32Type:
		var bits uint32
		bits, n = protowire.ConsumeFixed32(data)
		v = semantics.Float(float64(math.Float32frombits(bits)))
	case protowire.Fixed64Type:
		var bits uint64
		bits, n = protowire.ConsumeFixed64(data)
		v = semantics.Double(math.Float64frombits(bits))
	default:
		var text []byte
		if text, n = protowire.ConsumeBytes(data); n >= 0 {
			v, err = textValueOf(t, text)
		}
	}
	return v, err == nil && n == len(data)
}

// kindOf returns how a type is encoded.
func kindOf(t semantics.ValueType) protowire.Type {
	switch t {
	case semantics.TypeString, semantics.TypeURI, semantics.TypeUUID, semantics.TypeDecimal, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset, semantics.TypeBytes:
		return protowire.BytesType
	case semantics.TypeFloat:
		return protowire.Fixed32Type
	case semantics.TypeDouble:
		return protowire.Fixed64Type
	default:
		return protowire.VarintType
	}
}

// isSigned reports whether an integer is encoded as a sint32 or sint64.
func isSigned(t semantics.ValueType) bool {
	switch t {
	case semantics.TypeSByte, semantics.TypeInt16, semantics.TypeInt32, semantics.TypeInt64, semantics.TypeTimeSpan:
		return true
	default:
		return false
	}
}

var errUnusual = semantics.Errorf(semantics.InvalidArgument, "the value is not encoded as usual")

func integerOf(t semantics.ValueType, varint uint64) (semantics.Value, error) {
	switch {
	case t == semantics.TypeUint64:
		return semantics.Uint64(varint), nil
	case isSigned(t):
		return semantics.IntegerOf(t, protowire.DecodeZigZag(varint))
	case t == semantics.TypeNull && varint == 0:
		return semantics.Null(), nil
	case t == semantics.TypeBool && varint <= 1:
		return semantics.Bool(varint == 1), nil
	case varint <= math.MaxInt64:
		return semantics.IntegerOf(t, int64(varint)) // no integer: an error
	default:
		return semantics.Value{}, errUnusual
	}
}

func textValueOf(t semantics.ValueType, text []byte) (semantics.Value, error) {
	switch {
	case t == semantics.TypeBytes:
		return semantics.Bytes(text), nil
	case utf8.Valid(text):
		return semantics.TextOf(t, Text(text))
	default:
		return semantics.Value{}, errUnusual
	}
}

// valueSize returns how many bytes appendValue adds.
func valueSize(v semantics.Value) int {
	n := protowire.SizeTag(fieldOf(v.Type()))
	switch kindOf(v.Type()) {
	case protowire.BytesType:
		return n + protowire.SizeBytes(len(v.Text()))
	case protowire.Fixed32Type:
		return n + protowire.SizeFixed32()
	case protowire.Fixed64Type:
		return n + protowire.SizeFixed64()
	default:
		return n + protowire.SizeVarint(varintOf(v))
	}
}

func appendValue(b []byte, v semantics.Value) []byte {
	kind := kindOf(v.Type())
	b = protowire.AppendTag(b, fieldOf(v.Type()), kind)
	switch kind {
	case protowire.BytesType:
		return protowire.AppendString(b, v.Text())
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, math.Float32bits(float32(v.Float())))
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, math.Float64bits(v.Float()))
	default:
		return protowire.AppendVarint(b, varintOf(v))
	}
}

func varintOf(v semantics.Value) uint64 {
	if isSigned(v.Type()) {
		return protowire.EncodeZigZag(v.Int())
	}
	return v.Uint()
}
