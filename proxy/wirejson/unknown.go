package wirejson

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/nearest"
)

// unknownField is the error of a name that no field has. It proposes the field that was probably meant.
func unknownField(at, name string, fields protoreflect.FieldDescriptors) *semantics.Error {
	if meant := likely(name, fields); meant != "" {
		return BadValue(at, "is not a known field; did you mean %s?", meant)
	}
	return BadValue(at, "is not a known field")
}

// maxName is the length of the longest name that is compared, in bytes.
const maxName = 64

// likely returns what a name stands for, "" if nothing is near. Names of Service Bus differ from ours in their case;
// others are mistyped, or belong one level down, such as "text" beside "messages".
func likely(name string, fields protoreflect.FieldDescriptors) string {
	if len(name) > maxName {
		return ""
	}
	var names []string
	for i := range fields.Len() {
		known := fields.Get(i).JSONName()
		if strings.EqualFold(known, name) {
			return known
		}
		names = append(names, known)
	}
	if below := oneLevelDown(name, fields); below != "" {
		return below
	}
	return nearest.Of(name, names)
}

// oneLevelDown returns the path of a field of this name in one of the messages that the fields hold.
func oneLevelDown(name string, fields protoreflect.FieldDescriptors) string {
	for i := range fields.Len() {
		outer := fields.Get(i)
		inner := outer.Message()
		if inner == nil || outer.IsMap() || inner.Fields().ByJSONName(name) == nil {
			continue
		}
		if inner.ParentFile().Package() != protoreflect.FullName(messageName).Parent() {
			continue // such as a duration, which is text in JSON
		}
		if outer.IsList() {
			return outer.JSONName() + "[0]." + name
		}
		return outer.JSONName() + "." + name
	}
	return ""
}
