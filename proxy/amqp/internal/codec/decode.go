package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// MaxDepth is how deep values may be nested.
const MaxDepth = 32

// What can be wrong with encoded data.
var (
	errShort   = errors.New("the data ends within a value")
	errTooDeep = fmt.Errorf("values are nested deeper than %d", MaxDepth)
	errCount   = errors.New("a count is larger than the data that it is for")
)

// Decode reads the value that data begins with, and returns how many bytes it takes. Binary values refer to data;
// everything else has memory of its own.
func Decode(data []byte) (value any, n int, err error) {
	d := decoder{data: data, budget: len(data)}
	value, err = d.value(0)
	return value, d.at, err
}

// decoder reads one value.
type decoder struct {
	data []byte
	at   int
	// budget is how many more values there may be. A value takes at least one byte, except in an array of values that
	// have no bytes of their own: the budget bounds those.
	budget int
}

// take returns the next n bytes.
func (d *decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.data)-d.at {
		return nil, errShort
	}
	piece := d.data[d.at : d.at+n : d.at+n]
	d.at += n
	return piece, nil
}

func (d *decoder) code() (byte, error) {
	piece, err := d.take(1)
	if err != nil {
		return 0, err
	}
	return piece[0], nil
}

// value reads a constructor and its value.
func (d *decoder) value(depth int) (any, error) {
	code, err := d.code()
	if err != nil {
		return nil, err
	}
	if code != codeDescribed {
		return d.primitive(code, depth)
	}
	if depth >= MaxDepth {
		return nil, errTooDeep
	}
	descriptor, err := d.value(depth + 1)
	if err != nil {
		return nil, err
	}
	value, err := d.value(depth + 1)
	return Described{descriptor, value}, err
}

// primitive reads the value of a format code.
func (d *decoder) primitive(code byte, depth int) (any, error) {
	if d.budget--; d.budget < 0 {
		return nil, errCount
	}
	switch code >> 4 {
	case 0x4:
		return empty(code)
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		widths := [...]int{1, 2, 4, 8, 16}
		piece, err := d.take(widths[code>>4-5])
		if err != nil {
			return nil, err
		}
		return fixed(code, piece)
	case 0xa, 0xb:
		size, err := d.length(code>>4 == 0xb)
		if err != nil {
			return nil, err
		}
		piece, err := d.take(size)
		if err != nil {
			return nil, err
		}
		return variable(code, piece)
	case 0xc, 0xd, 0xe, 0xf:
		if depth >= MaxDepth {
			return nil, errTooDeep
		}
		return d.compound(code, depth+1)
	default:
		return nil, unknown(code)
	}
}

func unknown(code byte) error { return fmt.Errorf("0x%02x is not a format code", code) }

// empty returns the value of a code that has no bytes.
func empty(code byte) (any, error) {
	switch code {
	case codeNull:
		return nil, nil
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeUint0:
		return uint32(0), nil
	case codeUlong0:
		return uint64(0), nil
	case codeList0:
		return List{}, nil
	default:
		return nil, unknown(code)
	}
}

// fixed returns the value of a code with a fixed width.
func fixed(code byte, b []byte) (any, error) {
	switch code {
	case codeUbyte:
		return b[0], nil
	case codeByte:
		return int8(b[0]), nil
	case codeSmallUint:
		return uint32(b[0]), nil
	case codeSmallUlng:
		return uint64(b[0]), nil
	case codeSmallInt:
		return int32(int8(b[0])), nil
	case codeSmallLong:
		return int64(int8(b[0])), nil
	case codeBool:
		if b[0] > 1 {
			return nil, fmt.Errorf("0x%02x is not a boolean", b[0])
		}
		return b[0] == 1, nil
	case codeUshort:
		return binary.BigEndian.Uint16(b), nil
	case codeShort:
		return int16(binary.BigEndian.Uint16(b)), nil
	case codeUint:
		return binary.BigEndian.Uint32(b), nil
	case codeInt:
		return int32(binary.BigEndian.Uint32(b)), nil
	case codeFloat:
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case codeChar:
		r := binary.BigEndian.Uint32(b)
		if r > utf8.MaxRune {
			return nil, fmt.Errorf("0x%x is not a character", r)
		}
		return Char(r), nil
	case codeDec32:
		return Decimal32(b), nil
	case codeUlong:
		return binary.BigEndian.Uint64(b), nil
	case codeLong:
		return int64(binary.BigEndian.Uint64(b)), nil
	case codeDouble:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case codeTimestamp:
		return Timestamp(binary.BigEndian.Uint64(b)), nil
	case codeDec64:
		return Decimal64(b), nil
	case codeDec128:
		return Decimal128(b), nil
	case codeUUID:
		return UUID(b), nil
	default:
		return nil, unknown(code)
	}
}

// variable returns the value of a code with a length.
func variable(code byte, b []byte) (any, error) {
	switch code {
	case codeBin8, codeBin32:
		return b, nil
	case codeStr8, codeStr32:
		if !utf8.Valid(b) {
			return nil, errors.New("a string is not valid UTF-8")
		}
		return string(b), nil
	case codeSym8, codeSym32:
		for _, c := range b {
			if c >= utf8.RuneSelf {
				return nil, errors.New("a symbol is not ASCII")
			}
		}
		return Symbol(b), nil
	default:
		return nil, unknown(code)
	}
}

// length reads a length or count of one or four bytes.
func (d *decoder) length(isWide bool) (int, error) {
	width := 1
	if isWide {
		width = 4
	}
	piece, err := d.take(width)
	if err != nil {
		return 0, err
	}
	if !isWide {
		return int(piece[0]), nil
	}
	n := binary.BigEndian.Uint32(piece)
	if n > math.MaxInt32 {
		return 0, errCount
	}
	return int(n), nil
}

// compound reads a list, map or array after its format code.
func (d *decoder) compound(code byte, depth int) (any, error) {
	isWide := code>>4 == 0xd || code>>4 == 0xf
	size, err := d.length(isWide)
	if err != nil {
		return nil, err
	}
	start := d.at
	if size > len(d.data)-start {
		return nil, errShort
	}
	count, err := d.length(isWide)
	if err != nil {
		return nil, err
	}
	if count > d.budget {
		return nil, errCount
	}
	inner := decoder{data: d.data[:start+size], at: d.at, budget: d.budget}
	var value any
	switch code {
	case codeList8, codeList32:
		value, err = inner.list(count, depth)
	case codeMap8, codeMap32:
		value, err = inner.mapping(count, depth)
	case codeArray8, codeArray32:
		value, err = inner.array(count, depth)
	default:
		return nil, unknown(code)
	}
	switch {
	case err != nil:
		return nil, err
	case inner.at != start+size:
		return nil, errors.New("a list, map or array is longer than its values")
	}
	d.at, d.budget = inner.at, inner.budget
	return value, nil
}

// firstCapacity is for how many values memory is allocated before any of them was read.
const firstCapacity = 64

func (d *decoder) list(count, depth int) (any, error) {
	list := make(List, 0, min(count, firstCapacity))
	for range count {
		value, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func (d *decoder) mapping(count, depth int) (any, error) {
	if count%2 != 0 {
		return nil, errors.New("a map has a key without a value")
	}
	pairs := make(Map, 0, min(count/2, firstCapacity))
	for range count / 2 {
		key, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		value, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, Pair{key, value})
	}
	return pairs, nil
}

// array reads values that share one constructor, which may be described.
func (d *decoder) array(count, depth int) (any, error) {
	code, err := d.code()
	if err != nil {
		return nil, err
	}
	var descriptor any
	isDescribed := code == codeDescribed
	if isDescribed {
		if descriptor, err = d.value(depth); err != nil {
			return nil, err
		}
		if code, err = d.code(); err != nil {
			return nil, err
		}
	}
	if code == codeNull && count > 0 { // they take no bytes, so their number has no bound
		return nil, errors.New("an array has nulls")
	}
	array := make(Array, 0, min(count, firstCapacity))
	for range count {
		value, err := d.primitive(code, depth)
		if err != nil {
			return nil, err
		}
		if isDescribed {
			value = Described{descriptor, value}
		}
		array = append(array, value)
	}
	return array, nil
}
