package wire

import (
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// valueOf translates a property with its exact type (MSG-12, MSG-13). A value without a kind has a type that this
// version does not know, or has no value.
func valueOf(v *sidebusv1.Value) (semantics.Value, error) {
	switch k := v.GetKind().(type) {
	case *sidebusv1.Value_NullValue:
		return semantics.Null(), nil
	case *sidebusv1.Value_StringValue:
		return semantics.String(k.StringValue), nil
	case *sidebusv1.Value_BoolValue:
		return semantics.Bool(k.BoolValue), nil
	case *sidebusv1.Value_ByteValue:
		return semantics.IntegerOf(semantics.TypeByte, int64(k.ByteValue))
	case *sidebusv1.Value_SbyteValue:
		return semantics.IntegerOf(semantics.TypeSByte, int64(k.SbyteValue))
	case *sidebusv1.Value_CharValue:
		return semantics.IntegerOf(semantics.TypeChar, int64(k.CharValue))
	case *sidebusv1.Value_Int16Value:
		return semantics.IntegerOf(semantics.TypeInt16, int64(k.Int16Value))
	case *sidebusv1.Value_Uint16Value:
		return semantics.IntegerOf(semantics.TypeUint16, int64(k.Uint16Value))
	case *sidebusv1.Value_Int32Value:
		return semantics.IntegerOf(semantics.TypeInt32, int64(k.Int32Value))
	case *sidebusv1.Value_Uint32Value:
		return semantics.IntegerOf(semantics.TypeUint32, int64(k.Uint32Value))
	case *sidebusv1.Value_Int64Value:
		return semantics.Int64(k.Int64Value), nil
	case *sidebusv1.Value_Uint64Value:
		return semantics.Uint64(k.Uint64Value), nil
	case *sidebusv1.Value_FloatValue:
		return semantics.Float(float64(k.FloatValue)), nil
	case *sidebusv1.Value_DoubleValue:
		return semantics.Double(k.DoubleValue), nil
	case *sidebusv1.Value_DecimalValue:
		return semantics.TextOf(semantics.TypeDecimal, k.DecimalValue)
	case *sidebusv1.Value_UuidValue:
		return semantics.TextOf(semantics.TypeUUID, k.UuidValue)
	case *sidebusv1.Value_UriValue:
		return semantics.TextOf(semantics.TypeURI, k.UriValue)
	case *sidebusv1.Value_DatetimeValue:
		return semantics.TextOf(semantics.TypeDateTime, k.DatetimeValue)
	case *sidebusv1.Value_DatetimeoffsetValue:
		return semantics.TextOf(semantics.TypeDateTimeOffset, k.DatetimeoffsetValue)
	case *sidebusv1.Value_TimespanValue:
		return semantics.IntegerOf(semantics.TypeTimeSpan, k.TimespanValue)
	case *sidebusv1.Value_BytesValue:
		return semantics.Bytes(k.BytesValue), nil
	default:
		return semantics.Value{}, semantics.Errorf(semantics.InvalidArgument, "it has no value of a known type")
	}
}

// valueFrom is the opposite of valueOf. Integers fit, since semantics.IntegerOf has checked them.
func valueFrom(v semantics.Value) *sidebusv1.Value { //nolint:gosec // see above
	switch v.Type() {
	case semantics.TypeNull:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_NullValue{}}
	case semantics.TypeString:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{StringValue: v.Text()}}
	case semantics.TypeBool:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_BoolValue{BoolValue: v.Bool()}}
	case semantics.TypeByte:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_ByteValue{ByteValue: uint32(v.Int())}}
	case semantics.TypeSByte:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_SbyteValue{SbyteValue: int32(v.Int())}}
	case semantics.TypeChar:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_CharValue{CharValue: uint32(v.Int())}}
	case semantics.TypeInt16:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int16Value{Int16Value: int32(v.Int())}}
	case semantics.TypeUint16:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint16Value{Uint16Value: uint32(v.Int())}}
	case semantics.TypeInt32:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int32Value{Int32Value: int32(v.Int())}}
	case semantics.TypeUint32:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint32Value{Uint32Value: uint32(v.Int())}}
	case semantics.TypeInt64:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{Int64Value: v.Int()}}
	case semantics.TypeUint64:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint64Value{Uint64Value: v.Uint()}}
	case semantics.TypeFloat:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_FloatValue{FloatValue: float32(v.Float())}}
	case semantics.TypeDouble:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: v.Float()}}
	case semantics.TypeDecimal:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DecimalValue{DecimalValue: v.Text()}}
	case semantics.TypeUUID:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_UuidValue{UuidValue: v.Text()}}
	case semantics.TypeURI:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_UriValue{UriValue: v.Text()}}
	case semantics.TypeDateTime:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DatetimeValue{DatetimeValue: v.Text()}}
	case semantics.TypeDateTimeOffset:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DatetimeoffsetValue{DatetimeoffsetValue: v.Text()}}
	case semantics.TypeTimeSpan:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_TimespanValue{TimespanValue: v.Int()}}
	case semantics.TypeBytes:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_BytesValue{BytesValue: []byte(v.Text())}}
	default:
		return &sidebusv1.Value{}
	}
}
