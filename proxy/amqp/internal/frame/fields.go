package frame

import (
	"bytes"
	"fmt"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
)

// fields are the fields of a described list that is being read. A field that is missing at the end is as null. The
// first field of a wrong type is remembered as the error.
type fields struct {
	of   string
	list codec.List
	at   int
	err  error
}

// next returns the next field, nil if it is null.
func (f *fields) next() any {
	f.at++
	if f.at > len(f.list) {
		return nil
	}
	return f.list[f.at-1]
}

func (f *fields) fail(value any, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("field %d of %s is a %T, must be %s", f.at, f.of, value, want)
	}
}

// must fails if the last field that was read was null.
func (f *fields) must(isSet bool, name string) {
	if !isSet && f.err == nil {
		f.err = fmt.Errorf("%s needs %s", f.of, name)
	}
}

// text reads a string or symbol; absent: "".
func (f *fields) text() string {
	value := f.next()
	text, ok := codec.Text(value)
	if !ok && value != nil {
		f.fail(value, "a string or symbol")
	}
	return text
}

// boolean reads a boolean; absent: false.
func (f *fields) boolean() bool {
	value := f.next()
	b, ok := value.(bool)
	if !ok && value != nil {
		f.fail(value, "a boolean")
	}
	return b
}

// number reads an integer of at most max; absent: nil. Some clients write integers wider or narrower than their type.
func (f *fields) number(most uint64) *uint64 {
	value := f.next()
	if value == nil {
		return nil
	}
	n, isUnsigned := value.(uint64)
	if !isUnsigned {
		signed, ok := codec.Integer(value)
		if !ok || signed < 0 {
			f.fail(value, "an unsigned integer")
			return nil
		}
		n = uint64(signed)
	}
	if n > most {
		f.fail(value, fmt.Sprintf("at most %d", most))
		return nil
	}
	return &n
}

// uint reads a uint; absent: nil.
func (f *fields) uint() *uint32 {
	n := f.number(1<<32 - 1)
	if n == nil {
		return nil
	}
	v := uint32(*n)
	return &v
}

// small reads a ubyte; absent: nil.
func (f *fields) small() *uint8 {
	n := f.number(1<<8 - 1)
	if n == nil {
		return nil
	}
	v := uint8(*n)
	return &v
}

// required reads a uint that must be there.
func (f *fields) required(name string) uint32 {
	n := f.uint()
	if n == nil {
		f.must(false, name)
		return 0
	}
	return *n
}

// owned returns a value with its binaries copied: those that were decoded are valid only until the next frame.
func owned(value any) any {
	switch v := value.(type) {
	case []byte:
		return bytes.Clone(v)
	case codec.List:
		for i, item := range v {
			v[i] = owned(item)
		}
	case codec.Array:
		for i, item := range v {
			v[i] = owned(item)
		}
	case codec.Map:
		for i, p := range v {
			v[i] = codec.Entry(owned(p.Key), owned(p.Value))
		}
	case codec.Described:
		return codec.Described{Descriptor: owned(v.Descriptor), Value: owned(v.Value)}
	}
	return value
}

// binary reads a binary, which is valid until the next frame; absent: nil.
func (f *fields) binary() []byte {
	value := f.next()
	b, ok := value.([]byte)
	if !ok && value != nil {
		f.fail(value, "a binary")
	}
	return b
}

// mapping reads a map; absent: nil.
func (f *fields) mapping() codec.Map {
	value := owned(f.next())
	m, ok := value.(codec.Map)
	if !ok && value != nil {
		f.fail(value, "a map")
	}
	return m
}

// optional returns an integer for a list of fields, null for nil.
func optional[T any](n *T) any {
	if n == nil {
		return nil
	}
	return *n
}

// unless returns a value for a list of fields, null for the zero value.
func unless[T comparable](value T) any {
	var zero T
	if value == zero {
		return nil
	}
	return value
}

func orNull(m codec.Map) any {
	if m == nil {
		return nil
	}
	return m
}

func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// trimmed returns a list without the nulls at its end.
func trimmed(list codec.List) codec.List {
	for len(list) > 0 && list[len(list)-1] == nil {
		list = list[:len(list)-1]
	}
	return list
}
