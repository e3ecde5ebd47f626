package filter

import (
	"math"
	"math/bits"
)

type operator uint8

const (
	plus operator = iota
	minus
	times
	divide
	remainder
)

// String returns the operator as it is written.
func (o operator) String() string { return [...]string{"+", "-", "*", "/", "%"}[o] }

// precedence returns how tightly an operator binds.
func (o operator) precedence() int {
	if o <= minus {
		return precedenceSum
	}
	return precedenceProduct
}

// What can go wrong in arithmetic (RULE-8).
const (
	divisionByZero  = "division of an integer by zero"
	integerOverflow = "the result does not fit 64 bits"
	instantOverflow = "the result is outside the years 1 to 9999"
	joinTooLong     = "the joined text is longer than 64 KiB"
)

// calculate does one step of arithmetic (SQL-13, SQL-16). Operands it cannot be done with give missing (SQL-8, SQL-12).
func calculate(op operator, a, b operand) (result operand, problem string) {
	switch {
	case a.isInteger() && b.isInteger():
		return calculateIntegers(op, a, b)
	case a.isNumber() && b.isNumber():
		return floatOperand(calculateDoubles(op, a.number(), b.number())), ""
	case a.kind == kindText && b.kind == kindText && op == plus:
		if len(a.text)+len(b.text) > MaxJoinSize {
			return operand{}, joinTooLong
		}
		return textOperand(a.text + b.text), ""
	case a.kind == kindInstant || a.kind == kindSpan:
		return calculateTimes(op, a, b)
	default:
		return operand{}, ""
	}
}

func calculateDoubles(op operator, x, y float64) float64 {
	switch op {
	case plus:
		return x + y
	case minus:
		return x - y
	case times:
		return x * y
	case divide:
		return x / y
	default:
		return math.Mod(x, y)
	}
}

// magnitude is an integer as sign and absolute value, in which all 64-bit integers can be calculated alike.
type magnitude struct {
	negative bool
	abs      uint64
}

func magnitudeOf(o operand) magnitude {
	if o.kind == kindInteger && o.int() < 0 {
		return magnitude{true, -o.bits}
	}
	return magnitude{false, o.bits}
}

// calculateIntegers is exact. The result must fit int64, or uint64 if an operand is beyond int64 already.
func calculateIntegers(op operator, a, b operand) (operand, string) {
	x, y := magnitudeOf(a), magnitudeOf(b)
	var result magnitude
	var overflow uint64
	switch op {
	case minus:
		y.negative = !y.negative
		result, overflow = add(x, y)
	case plus:
		result, overflow = add(x, y)
	case times:
		result.negative = x.negative != y.negative
		overflow, result.abs = bits.Mul64(x.abs, y.abs)
	case divide, remainder:
		if y.abs == 0 {
			return operand{}, divisionByZero
		}
		if op == divide {
			result = magnitude{x.negative != y.negative, x.abs / y.abs}
		} else {
			result = magnitude{x.negative, x.abs % y.abs}
		}
	}
	wide := a.kind == kindUnsigned || b.kind == kindUnsigned
	switch {
	case overflow != 0:
		return operand{}, integerOverflow
	case result.negative && result.abs <= 1<<63:
		return operand{kind: kindInteger, bits: -result.abs}, ""
	case result.negative, result.abs > math.MaxInt64 && !wide:
		return operand{}, integerOverflow
	default:
		return uintOperand(result.abs), ""
	}
}

// add returns the sum and whether it is beyond 64 bits.
func add(x, y magnitude) (sum magnitude, carry uint64) {
	switch {
	case x.negative == y.negative:
		sum.negative = x.negative
		sum.abs, carry = bits.Add64(x.abs, y.abs, 0)
		return sum, carry
	case x.abs >= y.abs:
		return magnitude{x.negative, x.abs - y.abs}, 0
	default:
		return magnitude{y.negative, y.abs - x.abs}, 0
	}
}

// negate is what a minus sign makes of a value.
func negate(o operand) (operand, string) {
	switch {
	case o.isInteger():
		return calculateIntegers(minus, intOperand(0), o)
	case o.isNumber():
		return floatOperand(-o.number()), ""
	case o.kind == kindSpan:
		return calculateTimes(minus, spanOperand(0), o)
	default:
		return operand{}, ""
	}
}

const ticksPerSecond = 1e9 / int64(tick)

// calculateTimes does the sums and differences of instants and spans that have a meaning (SQL-16).
func calculateTimes(op operator, a, b operand) (operand, string) {
	switch {
	case op != plus && op != minus:
		return operand{}, ""
	case a.kind == kindSpan && b.kind == kindSpan:
		result, problem := calculateIntegers(op, intOperand(a.int()), intOperand(b.int()))
		result.kind = kindSpan
		return result, problem
	case a.kind == kindInstant && b.kind == kindSpan && op == plus:
		return shift(a, b.int()/ticksPerSecond, b.int()%ticksPerSecond)
	case a.kind == kindInstant && b.kind == kindSpan:
		return shift(a, -(b.int() / ticksPerSecond), -(b.int() % ticksPerSecond))
	case a.kind == kindSpan && b.kind == kindInstant && op == plus:
		return calculateTimes(op, b, a)
	case a.kind == kindInstant && b.kind == kindInstant && op == minus:
		ticks := int64(a.nanos)/int64(tick) - int64(b.nanos)/int64(tick)
		return spanOperand((a.int()-b.int())*ticksPerSecond + ticks), "" // 9999 years fit
	default:
		return operand{}, ""
	}
}

// shift moves an instant by seconds and ticks of the same sign.
func shift(at operand, seconds, ticks int64) (operand, string) {
	const first, last = -62135596800, 253402300799 // Unix seconds of years 1 to 9999
	nanos := int64(at.nanos) + ticks*int64(tick)
	seconds += at.int()
	switch {
	case nanos < 0:
		seconds, nanos = seconds-1, nanos+1e9
	case nanos >= 1e9:
		seconds, nanos = seconds+1, nanos-1e9
	}
	if seconds < first || seconds > last {
		return operand{}, instantOverflow
	}
	return operand{kind: kindInstant, bits: uint64(seconds), nanos: uint32(nanos)}, ""
}
