package filter

import (
	"cmp"
	"strconv"
	"strings"
)

type comparison uint8

const (
	equal comparison = iota
	notEqual
	greater
	greaterOrEqual
	less
	lessOrEqual
)

// String returns the operator as canonical text has it.
func (c comparison) String() string { return [...]string{"=", "<>", ">", ">=", "<", "<="}[c] }

// accepts returns the outcome for an order of the operands: -1, 0, 1.
func (c comparison) accepts(order int) Truth {
	switch c {
	case equal:
		return truthOf(order == 0)
	case notEqual:
		return truthOf(order != 0)
	case greater:
		return truthOf(order > 0)
	case greaterOrEqual:
		return truthOf(order >= 0)
	case less:
		return truthOf(order < 0)
	default:
		return truthOf(order <= 0)
	}
}

// compare compares two values (SQL-11, SQL-12). Values of unlike types and values without an order give Unknown.
func compare(op comparison, a, b operand) Truth {
	switch {
	case a.kind == kindText && b.kind == kindText:
		return op.accepts(strings.Compare(a.text, b.text))
	case a.isNumber() && b.isNumber():
		order, ordered := compareNumbers(a, b)
		if !ordered { // a NaN
			return truthOf(op == notEqual)
		}
		return op.accepts(order)
	case a.kind == kindBool && b.kind == kindBool:
		return op.same(a.bits == b.bits)
	case a.kind == kindUUID && (b.kind == kindUUID || b.kind == kindText && isUUID(b.text)),
		a.kind == kindText && b.kind == kindUUID && isUUID(a.text):
		return op.same(strings.EqualFold(a.text, b.text))
	case a.kind == kindSpan && b.kind == kindSpan:
		return op.accepts(cmp.Compare(a.int(), b.int()))
	case a.kind == kindInstant && b.kind == kindText:
		b, ok := parseInstant(b.text)
		return op.instants(a, b, ok)
	case a.kind == kindText && b.kind == kindInstant:
		a, ok := parseInstant(a.text)
		return op.instants(a, b, ok)
	case a.kind == kindInstant && b.kind == kindInstant:
		return op.instants(a, b, true)
	default:
		return Unknown
	}
}

// same is the outcome for types that know equality only.
func (c comparison) same(same bool) Truth {
	switch c {
	case equal:
		return truthOf(same)
	case notEqual:
		return truthOf(!same)
	default:
		return Unknown
	}
}

func (c comparison) instants(a, b operand, ok bool) Truth {
	if !ok {
		return Unknown
	}
	return c.accepts(cmp.Or(cmp.Compare(a.int(), b.int()), cmp.Compare(a.nanos, b.nanos)))
}

// compareNumbers orders two numbers by value; not ordered if one is a NaN.
func compareNumbers(a, b operand) (order int, ordered bool) {
	switch {
	case a.kind == kindInteger && b.kind == kindInteger:
		return cmp.Compare(a.int(), b.int()), true
	case a.kind == kindDouble && b.isInteger():
		order, ordered = compareIntegerDouble(b, a.float())
		return -order, ordered
	case a.isInteger() && b.kind == kindDouble:
		return compareIntegerDouble(a, b.float())
	case a.kind == kindDouble || b.kind == kindDouble:
		x, y := a.number(), b.number()
		return cmp.Compare(x, y), x == x && y == y
	case a.kind == kindDecimal || b.kind == kindDecimal:
		return compareDecimals(digitsOf(a), digitsOf(b)), true
	default: // integers, at least one of them beyond int64
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.bits, b.bits)), true
	}
}

// compareIntegerDouble does not round the integer: it compares with the whole part of the double first.
func compareIntegerDouble(a operand, f float64) (order int, ordered bool) {
	const two63, two64 = 1 << 63, 1 << 64
	switch {
	case f != f:
		return 0, false
	case f >= two64:
		return -1, true
	case f < -two63:
		return 1, true
	case f >= two63: // has no fraction
		if a.kind == kindInteger {
			return -1, true
		}
		return cmp.Compare(a.bits, uint64(f)), true
	case a.kind == kindUnsigned:
		return 1, true
	}
	whole := int64(f)
	return cmp.Or(cmp.Compare(a.int(), whole), cmp.Compare(float64(whole), f)), true
}

// number returns a number as the double nearest to it.
func (o operand) number() float64 {
	switch o.kind {
	case kindInteger:
		return float64(o.int())
	case kindUnsigned:
		return float64(o.bits)
	case kindDecimal:
		f, _ := strconv.ParseFloat(o.text, 64) // TextOf has checked it; 64 digits are in range
		return f
	default:
		return o.float()
	}
}

// figures is a number as decimal digits, without zeros that do not count.
type figures struct {
	negative        bool
	whole, fraction string
}

func digitsOf(o operand) figures {
	switch o.kind {
	case kindInteger:
		return figuresOf(strconv.FormatInt(o.int(), 10))
	case kindUnsigned:
		return figuresOf(strconv.FormatUint(o.bits, 10))
	default:
		return figuresOf(o.text)
	}
}

func figuresOf(s string) figures {
	negative := strings.HasPrefix(s, "-")
	whole, fraction, _ := strings.Cut(strings.TrimLeft(s, "+-"), ".")
	f := figures{negative, strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")}
	if f.whole == "" && f.fraction == "" {
		f.negative = false
	}
	return f
}

func compareDecimals(a, b figures) int {
	if a.negative != b.negative {
		if a.negative {
			return -1
		}
		return 1
	}
	order := cmp.Or(
		cmp.Compare(len(a.whole), len(b.whole)), strings.Compare(a.whole, b.whole),
		strings.Compare(a.fraction, b.fraction),
	)
	if a.negative {
		return -order
	}
	return order
}
