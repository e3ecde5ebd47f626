package filter

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// plainText returns a value as a text without type, as JSON of the API writes it; false for bytes and null.
func plainText(v semantics.Value) (string, bool) {
	o := operandOf(v)
	switch o.kind {
	case kindBool:
		return strconv.FormatBool(v.Bool()), true
	case kindInteger:
		return strconv.FormatInt(o.int(), 10), true
	case kindUnsigned:
		return strconv.FormatUint(o.bits, 10), true
	case kindDouble:
		return plainDouble(o.float()), true
	case kindText:
		return o.text, true
	case kindSpan:
		return formatSpan(o.int()), true
	default:
		return v.Text(), v.Type() != semantics.TypeBytes && v.Type() != semantics.TypeNull
	}
}

func plainDouble(f float64) string {
	if math.IsInf(f, 0) {
		return strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "+") + "inity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// value returns an operand as a property: integers become int64, or uint64 beyond it, instants datetimes.
func (o operand) value() semantics.Value {
	switch o.kind {
	case kindBool:
		return semantics.Bool(o.bits != 0)
	case kindInteger:
		return semantics.Int64(o.int())
	case kindUnsigned:
		return semantics.Uint64(o.bits)
	case kindDouble:
		return semantics.Double(o.float())
	case kindDecimal:
		return made(semantics.TextOf(semantics.TypeDecimal, o.text)).value
	case kindText:
		return semantics.String(o.text)
	case kindUUID:
		return made(semantics.TextOf(semantics.TypeUUID, o.text)).value
	case kindInstant:
		return made(semantics.TextOf(semantics.TypeDateTime, o.instant())).value
	case kindSpan:
		return made(semantics.IntegerOf(semantics.TypeTimeSpan, o.int())).value
	default:
		return semantics.Null()
	}
}

// instant writes an instant as RFC 3339.
func (o operand) instant() string {
	return time.Unix(o.int(), int64(o.nanos)).UTC().Format(time.RFC3339Nano)
}
