package dapr

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
)

// Numbers of the fields of dapr.proto.components.v1.PullMessagesResponse, and of the entries of its map.
const (
	fieldData     protowire.Number = 1
	fieldTopic    protowire.Number = 2
	fieldMetadata protowire.Number = 3
	fieldID       protowire.Number = 5

	fieldName, fieldValue protowire.Number = 1, 2
	metadataSize                           = 512 // about what topic, id and metadata of most messages take
)

// appendText adds a field with a text.
func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// responseOf returns an encoded PullMessagesResponse for the Dapr runtime. The generated code would take most of the
// time of a delivery for the map. It leaves the content type empty: otherwise the runtime would expect a cloud event
// whose envelope is in the metadata.
func responseOf(topic string, m *semantics.Received) []byte {
	b := make([]byte, 0, len(m.Body)+metadataSize)
	b = protowire.AppendBytes(protowire.AppendTag(b, fieldData, protowire.BytesType), m.Body)
	b = appendText(b, fieldTopic, topic)
	eachMetadata(m, func(name, value string) {
		b = protowire.AppendTag(b, fieldMetadata, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(textSize(len(deliveredPrefix)+len(name))+textSize(len(value))))
		b = protowire.AppendTag(b, fieldName, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(deliveredPrefix)+len(name)))
		b = append(append(b, deliveredPrefix...), name...)
		b = appendText(b, fieldValue, value)
	})
	return appendText(b, fieldID, m.LockToken.String())
}

// textSize returns the length of a field of an entry with a text of n bytes.
func textSize(n int) int { return protowire.SizeTag(fieldName) + protowire.SizeBytes(n) }

// codec is grpc-go's codec for protobuf, except that an answer may be encoded already.
type codec struct{ encoding.CodecV2 }

// Marshal encodes an answer.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if encoded, ok := v.(mem.SliceBuffer); ok {
		return mem.BufferSlice{encoded}, nil
	}
	return c.CodecV2.Marshal(v)
}
