package atom

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// formatValue returns the type and the text of a value in XML. What XML has no type for is a string.
func formatValue(v semantics.Value) (kind, text string) {
	switch v.Type() {
	case semantics.TypeBool:
		return "boolean", formatBool(v.Bool())
	case semantics.TypeByte, semantics.TypeSByte, semantics.TypeInt16, semantics.TypeUint16, semantics.TypeInt32,
		semantics.TypeUint32, semantics.TypeInt64:
		if n := v.Int(); n < math.MinInt32 || n > math.MaxInt32 {
			return "long", formatInteger(n)
		}
		return "int", formatInteger(v.Int()) // the SDK for JavaScript does not know the other types
	case semantics.TypeUint64:
		return "unsignedLong", strconv.FormatUint(v.Uint(), 10)
	case semantics.TypeFloat, semantics.TypeDouble:
		return "double", formatFloat(v.Float())
	case semantics.TypeDecimal:
		return "decimal", v.Text()
	case semantics.TypeDateTime, semantics.TypeDateTimeOffset:
		return "dateTime", v.Text()
	case semantics.TypeTimeSpan:
		return "duration", formatTicks(v.Int())
	case semantics.TypeChar:
		return "string", string(rune(v.Int()))
	default:
		return "string", v.Text()
	}
}

func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "INF"
	case math.IsInf(f, -1):
		return "-INF"
	default:
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
}

// parseValue returns a value of a type of XML.
func parseValue(kind, text string) (semantics.Value, error) {
	trimmed := strings.TrimSpace(text)
	switch kind {
	case "string":
		return semantics.String(text), nil
	case "boolean":
		is, err := parseBool("value", trimmed)
		return semantics.Bool(is), err
	case "int", "short", "byte", "long":
		n, err := parseInteger("value", trimmed)
		if err == nil && kind == "int" && n >= math.MinInt32 && n <= math.MaxInt32 {
			return semantics.IntegerOf(semantics.TypeInt32, n)
		}
		return semantics.Int64(n), err
	case "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte":
		n, err := strconv.ParseUint(trimmed, 10, 64)
		if err != nil {
			return semantics.Value{}, errValue(kind, text)
		}
		return semantics.Uint64(n), nil
	case "double", "float":
		f, err := strconv.ParseFloat(trimmed, 64)
		if err != nil {
			return semantics.Value{}, errValue(kind, text)
		}
		return semantics.Double(f), nil
	case "decimal":
		return semantics.TextOf(semantics.TypeDecimal, trimmed)
	case "dateTime":
		return parseInstant(trimmed)
	case "duration":
		d, err := parseDuration("value", trimmed)
		if err != nil {
			return semantics.Value{}, err
		}
		return semantics.IntegerOf(semantics.TypeTimeSpan, d.Nanoseconds()/100)
	default:
		return semantics.Value{}, errValue(kind, text)
	}
}

func errValue(kind, text string) error {
	return semantics.InvalidField("value", "is %q, which is not a value of the type %q", semantics.Shorten(text), semantics.Shorten(kind))
}

// parseInstant returns an instant, which is of UTC if it has no offset.
func parseInstant(text string) (semantics.Value, error) {
	if at, err := time.Parse("2006-01-02T15:04:05.999999999", text); err == nil {
		text = at.Format(time.RFC3339Nano)
	}
	return semantics.TextOf(semantics.TypeDateTime, text)
}
