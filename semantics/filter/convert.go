package filter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// convert brings a value to the type of the property it is set to (ACT-5). What would lose something fails: a fraction
// in an integer, a number out of range, a text that is none of the type.
func convert(v semantics.Value, to semantics.ValueType) (converted semantics.Value, problem string) {
	if v.Type() == to {
		return v, ""
	}
	converted, ok := converter(to)(v, operandOf(v), to)
	if !ok {
		return semantics.Value{}, fmt.Sprintf("%s of this value does not convert to %s", nounOf(v), to)
	}
	return converted, ""
}

// nounOf names the type of a value, for example "a string".
func nounOf(v semantics.Value) string {
	switch typ := v.Type(); typ {
	case semantics.TypeInt16, semantics.TypeInt32, semantics.TypeInt64:
		return "an " + typ.String()
	case semantics.TypeBytes:
		return typ.String()
	default:
		return "a " + typ.String()
	}
}

type conversion func(v semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool)

func converter(to semantics.ValueType) conversion {
	switch to {
	case semantics.TypeString, semantics.TypeURI:
		return toText
	case semantics.TypeBool:
		return toBool
	case semantics.TypeByte, semantics.TypeSByte, semantics.TypeInt16, semantics.TypeUint16, semantics.TypeInt32,
		semantics.TypeUint32, semantics.TypeInt64, semantics.TypeUint64:
		return toInteger
	case semantics.TypeFloat, semantics.TypeDouble:
		return toFloat
	case semantics.TypeDecimal:
		return toDecimal
	case semantics.TypeTimeSpan:
		return toSpan
	case semantics.TypeUUID:
		return toUUID
	case semantics.TypeChar:
		return toChar
	case semantics.TypeDateTime, semantics.TypeDateTimeOffset:
		return toInstant
	default:
		return toNothing
	}
}

func toText(v semantics.Value, _ operand, to semantics.ValueType) (semantics.Value, bool) {
	text, ok := plainText(v)
	return made(semantics.TextOf(to, text)).and(ok)
}

func toBool(_ semantics.Value, o operand, _ semantics.ValueType) (semantics.Value, bool) {
	isTrue := strings.EqualFold(o.text, "true")
	return semantics.Bool(isTrue), o.kind == kindText && (isTrue || strings.EqualFold(o.text, "false"))
}

func toInteger(_ semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	o, ok := o.whole()
	switch {
	case !ok:
		return semantics.Value{}, false
	case to == semantics.TypeUint64:
		return semantics.Uint64(o.bits), o.kind == kindUnsigned || o.int() >= 0
	default:
		return made(semantics.IntegerOf(to, o.int())).and(o.kind == kindInteger)
	}
}

func toFloat(_ semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	f, ok := o.number(), o.isNumber()
	if o.kind == kindText && strings.Trim(o.text, "0123456789+-.eE") == "" { // not "Inf", not hexadecimal
		var err error
		f, err = strconv.ParseFloat(o.text, 64)
		ok = err == nil
	}
	if to == semantics.TypeDouble {
		return semantics.Double(f), ok
	}
	small := semantics.Float(f)
	return small, ok && math.IsInf(small.Float(), 0) == math.IsInf(f, 0)
}

func toInstant(v semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	switch o.kind {
	case kindInstant:
		return made(semantics.TextOf(to, v.Text())).and(true)
	case kindText:
		if v, err := semantics.TextOf(to, o.text); err == nil { // keeps the offset
			return v, operandOf(v).kind == kindInstant
		}
		at, ok := parseInstant(o.text)
		return made(semantics.TextOf(to, at.instant())).and(ok)
	default:
		return semantics.Value{}, false
	}
}

func toDecimal(v semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	text, ok := plainText(v)
	if o.kind == kindDouble {
		text = strconv.FormatFloat(o.float(), 'f', -1, 64)
	}
	return made(semantics.TextOf(to, text)).and(ok)
}

func toSpan(_ semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	ticks, ok := parseSpan(o.text)
	return made(semantics.IntegerOf(to, ticks)).and(ok && o.kind == kindText)
}

func toUUID(_ semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	return made(semantics.TextOf(to, o.text)).and(o.kind == kindText)
}

func toChar(_ semantics.Value, o operand, to semantics.ValueType) (semantics.Value, bool) {
	r, size := utf8.DecodeRuneInString(o.text)
	return made(semantics.IntegerOf(to, int64(r))).and(o.kind == kindText && size > 0 && size == len(o.text))
}

func toNothing(semantics.Value, operand, semantics.ValueType) (semantics.Value, bool) {
	return semantics.Value{}, false
}

// attempt is a value that may have come to nothing.
type attempt struct {
	value semantics.Value
	ok    bool
}

func made(v semantics.Value, err error) attempt { return attempt{v, err == nil} }

func (a attempt) and(ok bool) (semantics.Value, bool) { return a.value, a.ok && ok }

// whole returns a number, or a text that is one, as an integer; false if it has a fraction or does not fit 64 bits.
func (o operand) whole() (operand, bool) {
	switch o.kind {
	case kindInteger, kindUnsigned:
		return o, true
	case kindDouble:
		const two63, two64 = 1 << 63, 1 << 64
		f := o.float()
		switch {
		case f != math.Trunc(f) || f < -two63 || f >= two64: // a NaN is not equal to anything
			return operand{}, false
		case f >= two63:
			return uintOperand(uint64(f)), true
		default:
			return intOperand(int64(f)), true
		}
	case kindDecimal:
		f := figuresOf(o.text)
		if f.negative {
			f.whole = "-" + f.whole
		}
		if f.whole == "" {
			f.whole = "0"
		}
		n, ok := textOperand(f.whole).whole()
		return n, ok && f.fraction == ""
	case kindText:
		if n, err := strconv.ParseInt(o.text, 10, 64); err == nil {
			return intOperand(n), true
		}
		n, err := strconv.ParseUint(o.text, 10, 64)
		return uintOperand(n), err == nil
	default:
		return operand{}, false
	}
}
