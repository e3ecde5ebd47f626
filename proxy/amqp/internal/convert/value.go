package convert

import (
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/semantics"
)

// Descriptors of the types that Service Bus adds to those of AMQP.
const (
	timeSpan       codec.Symbol = "com.microsoft:timespan"        // long, ticks
	dateTimeOffset codec.Symbol = "com.microsoft:datetime-offset" // long, ticks since year 1, UTC
	uri            codec.Symbol = "com.microsoft:uri"             // string
)

// Ticks are 100 ns.
const (
	tick      = 100 * time.Nanosecond
	unixTicks = 621_355_968_000_000_000 // of 1970, since year 1
)

// Ticks returns an instant in ticks since year 1.
func Ticks(at time.Time) int64 {
	return at.Unix()*int64(time.Second/tick) + int64(at.Nanosecond())/100 + unixTicks
}

func ofTicks(n int64) time.Time {
	n -= unixTicks
	perSecond := int64(time.Second / tick)
	seconds, rest := n/perSecond, n%perSecond
	return time.Unix(seconds, rest*100).UTC()
}

// Timestamp returns an instant as AMQP writes it.
func Timestamp(at time.Time) codec.Timestamp { return codec.Timestamp(at.UnixMilli()) }

// Time returns the instant of a timestamp.
func Time(t codec.Timestamp) time.Time { return time.UnixMilli(int64(t)).UTC() }

// Value converts the value of an application property. It fails with INVALID_ARGUMENT for a list, a map and an array,
// which properties of AMQP cannot be. What MSG-12 does not have becomes what is nearest to it: a symbol a string, what
// is described its value, an instant after the year 9999 its milliseconds. The message keeps it as it came, see rest.
func Value(name string, value any) (semantics.Value, error) {
	v, err := valueOf(value)
	if err != nil {
		return v, semantics.InvalidField("properties["+semantics.Shorten(name)+"]", "%s", semantics.AsError(err).Message)
	}
	return v, nil
}

func valueOf(value any) (semantics.Value, error) {
	switch v := value.(type) {
	case nil:
		return semantics.Null(), nil
	case bool:
		return semantics.Bool(v), nil
	case uint8:
		return semantics.IntegerOf(semantics.TypeByte, int64(v))
	case int8:
		return semantics.IntegerOf(semantics.TypeSByte, int64(v))
	case uint16:
		return semantics.IntegerOf(semantics.TypeUint16, int64(v))
	case int16:
		return semantics.IntegerOf(semantics.TypeInt16, int64(v))
	case uint32:
		return semantics.IntegerOf(semantics.TypeUint32, int64(v))
	case int32:
		return semantics.IntegerOf(semantics.TypeInt32, int64(v))
	case uint64:
		return semantics.Uint64(v), nil
	case int64:
		return semantics.Int64(v), nil
	case float32:
		return semantics.Float(float64(v)), nil
	case float64:
		return semantics.Double(v), nil
	case codec.Char:
		return semantics.IntegerOf(semantics.TypeChar, int64(v))
	case codec.Timestamp:
		if at, err := semantics.TextOf(semantics.TypeDateTime, Time(v).Format(time.RFC3339Nano)); err == nil {
			return at, nil
		}
		return semantics.Int64(int64(v)), nil
	case codec.UUID:
		return semantics.TextOf(semantics.TypeUUID, semantics.UUID(v).String())
	case []byte:
		return semantics.Bytes(v), nil
	case string:
		return semantics.String(v), nil
	case codec.Symbol:
		return semantics.String(string(v)), nil
	case codec.Decimal32, codec.Decimal64, codec.Decimal128:
		return decimalValue(v), nil
	case codec.Described:
		return describedValue(v)
	default:
		return semantics.Value{}, semantics.Errorf(semantics.InvalidArgument, "is a list, map or array, which properties cannot be")
	}
}

// describedValue returns a value of a type of Service Bus, or the value without its descriptor.
func describedValue(v codec.Described) (semantics.Value, error) {
	name, _ := codec.Text(v.Descriptor)
	n, isLong := v.Value.(int64)
	text, isText := v.Value.(string)
	switch {
	case name == string(timeSpan) && isLong:
		return semantics.IntegerOf(semantics.TypeTimeSpan, n)
	case name == string(dateTimeOffset) && isLong:
		if at, err := semantics.TextOf(semantics.TypeDateTimeOffset, ofTicks(n).Format(time.RFC3339Nano)); err == nil {
			return at, nil
		}
	case name == string(uri) && isText:
		return semantics.TextOf(semantics.TypeURI, text)
	}
	return valueOf(v.Value)
}

// FromValue converts an application property for AMQP. What AMQP cannot hold becomes a string.
func FromValue(v semantics.Value) any {
	switch v.Type() {
	case semantics.TypeNull:
		return nil
	case semantics.TypeString:
		return v.Text()
	case semantics.TypeBool:
		return v.Bool()
	case semantics.TypeByte:
		return uint8(v.Int())
	case semantics.TypeSByte:
		return int8(v.Int())
	case semantics.TypeChar:
		return codec.Char(v.Int())
	case semantics.TypeInt16:
		return int16(v.Int())
	case semantics.TypeUint16:
		return uint16(v.Int())
	case semantics.TypeInt32:
		return int32(v.Int())
	case semantics.TypeUint32:
		return uint32(v.Int())
	case semantics.TypeInt64:
		return v.Int()
	case semantics.TypeUint64:
		return v.Uint()
	case semantics.TypeFloat:
		return float32(v.Float())
	case semantics.TypeDouble:
		return v.Float()
	case semantics.TypeDecimal:
		return fromDecimal(v.Text())
	case semantics.TypeUUID:
		return uuidOf(v.Text())
	case semantics.TypeURI:
		return codec.Described{Descriptor: uri, Value: v.Text()}
	case semantics.TypeDateTime:
		return Timestamp(instantOf(v.Text()))
	case semantics.TypeDateTimeOffset:
		return codec.Described{Descriptor: dateTimeOffset, Value: Ticks(instantOf(v.Text()))}
	case semantics.TypeTimeSpan:
		return codec.Described{Descriptor: timeSpan, Value: v.Int()}
	case semantics.TypeBytes:
		return []byte(v.Text())
	default:
		return v.Text()
	}
}

// instantOf parses the text of a datetime, which is always valid.
func instantOf(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// uuidOf parses the text of a uuid, which is always valid.
func uuidOf(text string) codec.UUID {
	token, _ := semantics.ParseLockToken(strings.TrimSpace(text))
	return codec.UUID(token)
}
