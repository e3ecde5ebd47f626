package wire

import (
	"encoding/json"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// DecodeMessage reads an encoded Message into to, which then refers to data. refused is the error of MessageOf; err is
// why data is not an encoded Message.
func DecodeMessage(data []byte, to *semantics.Message) (refused, err error) {
	if encoded.Decode(data, to) && isContent(to) {
		return nil, nil
	}
	message := &sidebusv1.Message{}
	if err := proto.Unmarshal(data, message); err != nil {
		return nil, err
	}
	return MessageOf(message, to), nil
}

// isContent reports whether the body is what its kind says.
func isContent(m *semantics.Message) bool {
	switch m.BodyKind {
	case semantics.BodyText:
		return utf8.Valid(m.Body)
	case semantics.BodyJSON:
		return utf8.Valid(m.Body) && json.Valid(m.Body)
	default:
		return true
	}
}

// EncodedFrom is ReceivedFrom for an answer that is only encoded: protobuf encodes fields that it does not know as they
// are, so what the sender set is there as it was stored, and need not be decoded.
func EncodedFrom(messages []*semantics.Received) []*sidebusv1.ReceivedMessage {
	size := 0
	for _, m := range messages {
		size += systemSize + max(len(m.Encoded), len(m.Body))
	}
	all, data := make([]sidebusv1.ReceivedMessage, len(messages)), make([]byte, 0, size)
	answer := make([]*sidebusv1.ReceivedMessage, len(messages))
	for i, m := range messages {
		begin, isText := len(data), false
		if data, isText = appendReceived(data, m); !isText {
			return ReceivedFrom(messages, false) // which the generated code refuses to encode
		}
		answer[i] = &all[i]
		answer[i].ProtoReflect().SetUnknown(data[begin:len(data):len(data)])
	}
	return answer
}
