package encoded

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
)

// Append adds the encoded message to b, without its lifetime, its schedule and how it was forwarded, which the broker
// changes on its way. Append reports false if a text is not UTF-8, so that no client could read it.
func Append(b []byte, m *semantics.Message) ([]byte, bool) {
	b, isValid := AppendHeaders(b, m)
	return append(AppendBodyHead(b, m.BodyKind, len(m.Body)), m.Body...), isValid
}

// AppendHeaders is Append without the body, which follows: AppendBodyHead and then the body itself. It looks at the
// body to see whether it is a text.
func AppendHeaders(b []byte, m *semantics.Message) ([]byte, bool) {
	isValid := m.BodyKind == semantics.BodyBytes || utf8.Valid(m.Body)
	for i, text := range textsOf(m) {
		if *text == "" { // which means "not set" (MSG-2)
			continue
		}
		isValid = isValid && utf8.ValidString(*text)
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendString(b, *text)
	}
	for name, v := range m.Properties {
		isValid = isValid && utf8.ValidString(name) && (v.Type() == semantics.TypeBytes || utf8.ValidString(v.Text()))
		b = appendProperty(b, name, v)
	}
	return b, isValid
}

// AppendBodyHead appends what stands before a body of so many bytes.
func AppendBodyHead(b []byte, kind semantics.BodyKind, length int) []byte {
	b = protowire.AppendTag(b, fieldBody+protowire.Number(kind), protowire.BytesType)
	return protowire.AppendVarint(b, uint64(length)) //nolint:gosec // not negative
}

// Size is at least the number of bytes that Append adds.
func Size(m *semantics.Message) int {
	n := len(m.Body) + overhead
	for _, text := range textsOf(m) {
		n += len(*text) + overhead
	}
	for name, v := range m.Properties {
		n += len(name) + valueSize(v) + 2*overhead
	}
	return n
}

// overhead is the most that tag and length of a field take.
const overhead = 6

func appendProperty(b []byte, name string, v semantics.Value) []byte {
	const tags = 2 // bytes of the tags of key and value
	value := valueSize(v)
	b = protowire.AppendTag(b, fieldProperties, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(tags+protowire.SizeBytes(len(name))+protowire.SizeBytes(value))) //nolint:gosec // not negative
	b = protowire.AppendTag(b, fieldKey, protowire.BytesType)
	b = protowire.AppendString(b, name)
	b = protowire.AppendTag(b, fieldValue, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(value)) //nolint:gosec // not negative
	return appendValue(b, v)
}
