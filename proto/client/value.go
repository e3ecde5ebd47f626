package client

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Types of application properties that Go has no type for.
type (
	// Char is one Unicode code point, 0 to 0x10FFFF.
	Char rune
	// Decimal is a decimal number of at most 64 characters: sign, digits, one point. It is kept as written.
	Decimal string
	// UUID has the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
	UUID string
	// URI is kept as written and not checked.
	URI string
	// DateTimeOffset is an instant that keeps its offset from UTC; a time.Time comes back in UTC.
	DateTimeOffset time.Time
)

// tick is the unit of a span of time on the wire.
const tick = 100 * time.Nanosecond

// toProperties converts application properties.
func toProperties(properties map[string]any) (map[string]*sidebusv1.Value, error) {
	if len(properties) == 0 {
		return nil, nil //nolint:nilnil // no properties are no mistake
	}
	converted := make(map[string]*sidebusv1.Value, len(properties))
	for name, property := range properties {
		value, err := toValue(property)
		if err != nil {
			return nil, invalidArgument("properties["+name+"]", err.Error())
		}
		converted[name] = value
	}
	return converted, nil
}

func toValue(property any) (*sidebusv1.Value, error) {
	switch p := property.(type) {
	case nil:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_NullValue{NullValue: structpb.NullValue_NULL_VALUE}}, nil
	case string:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{StringValue: p}}, nil
	case bool:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_BoolValue{BoolValue: p}}, nil
	case []byte:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_BytesValue{BytesValue: p}}, nil
	case float32:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_FloatValue{FloatValue: p}}, nil
	case float64:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DoubleValue{DoubleValue: p}}, nil
	case time.Time:
		text := p.UTC().Format(time.RFC3339Nano)
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DatetimeValue{DatetimeValue: text}}, nil
	case time.Duration:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_TimespanValue{TimespanValue: int64(p / tick)}}, nil
	case DateTimeOffset:
		text := time.Time(p).Format(time.RFC3339Nano)
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DatetimeoffsetValue{DatetimeoffsetValue: text}}, nil
	case Char:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_CharValue{CharValue: uint32(p)}}, nil
	case Decimal:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_DecimalValue{DecimalValue: string(p)}}, nil
	case UUID:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_UuidValue{UuidValue: string(p)}}, nil
	case URI:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_UriValue{UriValue: string(p)}}, nil
	default:
		return toInteger(property)
	}
}

func toInteger(property any) (*sidebusv1.Value, error) {
	switch p := property.(type) {
	case int:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{Int64Value: int64(p)}}, nil
	case int64:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int64Value{Int64Value: p}}, nil
	case int32:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int32Value{Int32Value: p}}, nil
	case int16:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Int16Value{Int16Value: int32(p)}}, nil
	case int8:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_SbyteValue{SbyteValue: int32(p)}}, nil
	case uint:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint64Value{Uint64Value: uint64(p)}}, nil
	case uint64:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint64Value{Uint64Value: p}}, nil
	case uint32:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint32Value{Uint32Value: p}}, nil
	case uint16:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_Uint16Value{Uint16Value: uint32(p)}}, nil
	case uint8:
		return &sidebusv1.Value{Kind: &sidebusv1.Value_ByteValue{ByteValue: uint32(p)}}, nil
	default:
		return nil, fmt.Errorf("a property cannot be a %T; convert it to one of the types of Message.ApplicationProperties", property)
	}
}

func fromProperties(properties map[string]*sidebusv1.Value) map[string]any {
	if len(properties) == 0 {
		return nil
	}
	converted := make(map[string]any, len(properties))
	for name, value := range properties {
		converted[name] = fromValue(value)
	}
	return converted
}

// fromValue converts a property as the sidecar sends it, which has checked it. Of a kind that this version does not
// know it is nil.
func fromValue(value *sidebusv1.Value) any {
	switch kind := value.GetKind().(type) {
	case *sidebusv1.Value_StringValue:
		return kind.StringValue
	case *sidebusv1.Value_BoolValue:
		return kind.BoolValue
	case *sidebusv1.Value_ByteValue:
		return uint8(kind.ByteValue)
	case *sidebusv1.Value_SbyteValue:
		return int8(kind.SbyteValue)
	case *sidebusv1.Value_CharValue:
		return Char(kind.CharValue)
	case *sidebusv1.Value_Int16Value:
		return int16(kind.Int16Value)
	case *sidebusv1.Value_Uint16Value:
		return uint16(kind.Uint16Value)
	case *sidebusv1.Value_Int32Value:
		return kind.Int32Value
	case *sidebusv1.Value_Uint32Value:
		return kind.Uint32Value
	case *sidebusv1.Value_Int64Value:
		return kind.Int64Value
	case *sidebusv1.Value_Uint64Value:
		return kind.Uint64Value
	case *sidebusv1.Value_FloatValue:
		return kind.FloatValue
	case *sidebusv1.Value_DoubleValue:
		return kind.DoubleValue
	case *sidebusv1.Value_DecimalValue:
		return Decimal(kind.DecimalValue)
	case *sidebusv1.Value_UuidValue:
		return UUID(kind.UuidValue)
	case *sidebusv1.Value_UriValue:
		return URI(kind.UriValue)
	case *sidebusv1.Value_DatetimeValue:
		at, _ := time.Parse(time.RFC3339Nano, kind.DatetimeValue)
		return at.UTC()
	case *sidebusv1.Value_DatetimeoffsetValue:
		at, _ := time.Parse(time.RFC3339Nano, kind.DatetimeoffsetValue)
		return DateTimeOffset(at)
	case *sidebusv1.Value_TimespanValue:
		return time.Duration(kind.TimespanValue) * tick
	case *sidebusv1.Value_BytesValue:
		return kind.BytesValue
	default:
		return nil
	}
}
