package wire

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/semantics"
)

// RefuseUnknown rejects a message with fields that this version does not know. If it ignored them, as protobuf does,
// the caller would rely on something that does not happen, such as a delay.
func RefuseUnknown(field string, m proto.Message) error {
	unknown := m.ProtoReflect().GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	return semantics.InvalidField(
		field,
		"has fields that this sidecar does not know, with the numbers %s; upgrade the sidecar, or do not set them",
		fieldNumbers(unknown),
	)
}

// maxFieldNumbers is the largest number of unknown fields that an error lists.
const maxFieldNumbers = 5

// fieldNumbers returns the numbers of encoded fields, each once.
func fieldNumbers(encoded protoreflect.RawFields) string {
	var numbers []string
	for len(encoded) > 0 {
		number, _, n := protowire.ConsumeField(encoded)
		if n < 0 {
			break
		}
		encoded = encoded[n:]
		text := strconv.Itoa(int(number))
		if slices.Contains(numbers, text) {
			continue
		}
		if len(numbers) == maxFieldNumbers {
			return strings.Join(numbers, ", ") + " and others"
		}
		numbers = append(numbers, text)
	}
	return strings.Join(numbers, ", ")
}
