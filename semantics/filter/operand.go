package filter

import (
	"math"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// kind is what a value is for a filter; the many property types of MSG-12 come down to these.
type kind uint8

const (
	kindMissing  kind = iota // without a value: SQL's unknown
	kindNull                 // there is a property, and it is null
	kindBool                 // bits 0 or 1
	kindInteger              // bits: int64
	kindUnsigned             // bits: uint64 beyond int64
	kindDouble               // bits: float64
	kindDecimal              // text, as semantics.TextOf takes it
	kindText                 // text
	kindUUID                 // text in lower case
	kindInstant              // bits: Unix seconds, nanos
	kindSpan                 // bits: int64, ticks
	kindOpaque               // bytes: a value that compares with nothing
)

// tick is the unit of timespans.
const tick = 100 * time.Nanosecond

// maxInstant is the most bytes an ISO text may have to be read; no text that means an instant is longer.
const maxInstant = 40

// operand is a value while a filter is evaluated.
type operand struct {
	kind  kind
	nanos uint32
	bits  uint64
	text  string
}

func textOperand(s string) operand   { return operand{kind: kindText, text: s} }
func intOperand(n int64) operand     { return operand{kind: kindInteger, bits: uint64(n)} }
func spanOperand(n int64) operand    { return operand{kind: kindSpan, bits: uint64(n)} }
func floatOperand(f float64) operand { return operand{kind: kindDouble, bits: math.Float64bits(f)} }

func boolOperand(b bool) operand {
	if b {
		return operand{kind: kindBool, bits: 1}
	}
	return operand{kind: kindBool}
}

// int returns the number of an integer, the ticks of a span, the seconds of an instant.
func (o operand) int() int64 { return int64(o.bits) }

func (o operand) float() float64 { return math.Float64frombits(o.bits) }

func (o operand) isInteger() bool { return o.kind == kindInteger || o.kind == kindUnsigned }

func (o operand) isNumber() bool { return o.kind >= kindInteger && o.kind <= kindDecimal }

func (o operand) isVoid() bool { return o.kind == kindMissing || o.kind == kindNull }

// positive is what a plus sign makes of a value.
func (o operand) positive() operand {
	if o.isNumber() || o.kind == kindSpan {
		return o
	}
	return operand{}
}

// fitsParameter reports whether a parameter may have this value, made from type t (SQL-16).
func (o operand) fitsParameter(t semantics.ValueType) bool {
	switch o.kind {
	case kindBool, kindInteger, kindUnsigned, kindDouble, kindDecimal, kindInstant, kindSpan:
		return true
	case kindText:
		return t == semantics.TypeString && strings.ToValidUTF8(o.text, "") == o.text
	default:
		return false
	}
}

// operandOf brings a property to the form filters work with.
func operandOf(v semantics.Value) operand {
	switch v.Type() {
	case semantics.TypeNull:
		return operand{kind: kindNull}
	case semantics.TypeString, semantics.TypeURI:
		return textOperand(v.Text())
	case semantics.TypeChar:
		return textOperand(string(rune(v.Int())))
	case semantics.TypeBool:
		return boolOperand(v.Bool())
	case semantics.TypeByte, semantics.TypeSByte, semantics.TypeInt16, semantics.TypeUint16, semantics.TypeInt32,
		semantics.TypeUint32, semantics.TypeInt64:
		return intOperand(v.Int())
	case semantics.TypeUint64:
		return uintOperand(v.Uint())
	case semantics.TypeFloat, semantics.TypeDouble:
		return floatOperand(v.Float())
	case semantics.TypeDecimal:
		return operand{kind: kindDecimal, text: v.Text()}
	case semantics.TypeUUID:
		return operand{kind: kindUUID, text: v.Text()}
	case semantics.TypeDateTime, semantics.TypeDateTimeOffset:
		if o, ok := parseInstant(v.Text()); ok {
			return o
		}
		return operand{kind: kindOpaque}
	case semantics.TypeTimeSpan:
		return spanOperand(v.Int())
	default:
		return operand{kind: kindOpaque}
	}
}

// uintOperand is an integer where it can be, so that unsigned always means beyond int64.
func uintOperand(n uint64) operand {
	if n > math.MaxInt64 {
		return operand{kind: kindUnsigned, bits: n}
	}
	return operand{kind: kindInteger, bits: n}
}

// parseInstant reads an ISO text: a date, or date and time with or without offset; UTC where there is none.
func parseInstant(s string) (operand, bool) {
	if len(s) < len(time.DateOnly) || len(s) > maxInstant {
		return operand{}, false
	}
	layout := time.RFC3339Nano
	switch rest := s[len(time.DateOnly):]; {
	case rest == "":
		layout = time.DateOnly
	case !strings.HasSuffix(rest, "Z") && !strings.ContainsAny(rest, "+-"):
		layout = "2006-01-02T15:04:05" // takes a fraction of the second as well
	}
	at, err := time.Parse(layout, s)
	if err != nil {
		return operand{}, false
	}
	return operand{kind: kindInstant, bits: uint64(at.Unix()), nanos: uint32(at.Nanosecond())}, true
}

// isUUID reports whether s is a uuid as 8-4-4-4-12 hexadecimal digits, in any case.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}
