package convert

import (
	"encoding/binary"
	"math/big"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/semantics"
)

// format is one of the decimal formats of IEEE 754-2008 in their binary encoding: a sign, an exponent with a bias, and
// an integer as coefficient. If the two bits behind the sign are set, the exponent begins two bits later and the
// coefficient has the bits 100 before its own, or the number is none.
type format struct{ bits, exponentBits, bias, digits int }

var (
	decimal32  = format{32, 8, 101, 7}
	decimal64  = format{64, 10, 398, 16}
	decimal128 = format{128, 14, 6176, 34}
)

// decimalValue converts a decimal number. One that the 64 characters of a decimal property do not hold becomes a text
// with an exponent, and what is not a number, or infinite, becomes its name.
func decimalValue(value any) semantics.Value {
	var text string
	switch v := value.(type) {
	case codec.Decimal32:
		text = decimal32.text(v[:])
	case codec.Decimal64:
		text = decimal64.text(v[:])
	case codec.Decimal128:
		text = decimal128.text(v[:])
	}
	if v, err := semantics.TextOf(semantics.TypeDecimal, text); err == nil {
		return v
	}
	return semantics.String(text)
}

const maxZeros = 64 // more than a property has digits

// text returns a number, without exponent if that takes at most maxZeros characters.
func (f format) text(b []byte) string {
	n := new(big.Int).SetBytes(b)
	isNegative := n.Bit(f.bits-1) == 1
	shift, lead := f.bits-1-f.exponentBits, int64(0)
	if n.Bit(f.bits-2) == 1 && n.Bit(f.bits-3) == 1 {
		if n.Bit(f.bits-4) == 1 && n.Bit(f.bits-5) == 1 {
			return name(isNegative, n.Bit(f.bits-6) == 1)
		}
		shift, lead = shift-2, 0b100
	}
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.exponentBits)), big.NewInt(1))
	exponent := int(new(big.Int).And(new(big.Int).Rsh(n, uint(shift)), mask).Int64()) - f.bias
	coefficient := new(big.Int).And(n, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(shift)), big.NewInt(1)))
	coefficient.Add(coefficient, new(big.Int).Lsh(big.NewInt(lead), uint(shift)))
	digits := coefficient.String()
	if len(digits) > f.digits {
		digits = "0" // not canonical: the standard has it as zero
	}
	sign := ""
	if isNegative {
		sign = "-"
	}
	scientific := sign + digits + "E" + strconv.Itoa(exponent)
	switch {
	case digits == "0" && (exponent > 0 || -exponent > maxZeros):
		return sign + "0"
	case exponent >= 0:
		if exponent > maxZeros {
			return scientific
		}
		digits += strings.Repeat("0", exponent)
	case -exponent > maxZeros:
		return scientific
	default:
		if missing := -exponent - len(digits) + 1; missing > 0 {
			digits = strings.Repeat("0", missing) + digits
		}
		point := len(digits) + exponent
		digits = digits[:point] + "." + digits[point:]
	}
	if len(sign+digits) > maxZeros {
		return scientific
	}
	return sign + digits
}

// name returns the name of what has no digits.
func name(isNegative, isNaN bool) string {
	switch {
	case isNaN:
		return "NaN"
	case isNegative:
		return "-Infinity"
	default:
		return "Infinity"
	}
}

// fromDecimal returns a number as decimal128, or its text if it has too many digits.
func fromDecimal(text string) any {
	rest, isNegative := strings.CutPrefix(text, "-")
	rest = strings.TrimPrefix(rest, "+")
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	n, ok := new(big.Int).SetString("0"+digits, 10)
	if !ok || len(digits) > decimal128.digits {
		return text
	}
	n.Add(n, new(big.Int).Lsh(big.NewInt(int64(decimal128.bias-len(fraction))), 113))
	if isNegative {
		n.SetBit(n, 127, 1)
	}
	var b codec.Decimal128
	n.FillBytes(b[:])
	return b
}

// GUID returns a lock token as the tag of a delivery, in the byte order of .NET.
func GUID(token semantics.LockToken) []byte {
	b := make([]byte, len(token))
	copy(b, token[:])
	binary.LittleEndian.PutUint32(b, binary.BigEndian.Uint32(token[:]))
	binary.LittleEndian.PutUint16(b[4:], binary.BigEndian.Uint16(token[4:]))
	binary.LittleEndian.PutUint16(b[6:], binary.BigEndian.Uint16(token[6:]))
	return b
}
