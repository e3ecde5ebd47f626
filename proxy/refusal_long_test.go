package proxy_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sidebus/sidebus/semantics/memstore"
)

// longestError is how many bytes an error may have: some clients take 8 KiB of trailers, in which a character can need
// three bytes, and break the connection of all their calls if there are more.
const longestError = 1024

// An error does not repeat a long text of its request, whichever field has it.
func TestERR_2_NoErrorRepeatsALongText(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.furnish(t)
	text, tried := strings.Repeat("z", 100_000), 0
	for _, file := range files() {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				method := file.Services().Get(i).Methods().Get(j)
				if method.IsStreamingClient() {
					continue
				}
				for _, path := range textsOf(method.Input(), nil) {
					tried++
					request := dynamicpb.NewMessage(method.Input())
					setText(request, path, text)
					err := s.conn.Invoke(t.Context(), "/"+string(method.Parent().FullName())+"/"+string(method.Name()), request, dynamicpb.NewMessage(method.Output()))
					if size := proto.Size(status.Convert(err).Proto()); size > longestError {
						t.Errorf("%s with a long %s: got an error of %d bytes, want at most %d: %.200s", method.Name(), path[len(path)-1].FullName(), size, longestError, err)
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("tried %d fields: this proves little", tried)
	}
}

// textsOf returns the paths of all texts in a message of the API, and of all maps, whose keys are texts.
func textsOf(message protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor) (all [][]protoreflect.FieldDescriptor) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		path := append(append([]protoreflect.FieldDescriptor(nil), above...), field)
		switch {
		case field.Kind() == protoreflect.StringKind, field.IsMap():
			all = append(all, path)
		case field.Kind() == protoreflect.MessageKind && field.Message().ParentFile().Package() == message.ParentFile().Package():
			all = append(all, textsOf(field.Message(), path)...)
		}
	}
	return all
}

// setText sets the text at the end of a path, in a request that is right in what it names beside it.
func setText(message protoreflect.Message, path []protoreflect.FieldDescriptor, text string) {
	for _, name := range []protoreflect.Name{"source", "target"} {
		if field := message.Descriptor().Fields().ByName(name); field != nil && field.Kind() == protoreflect.StringKind {
			message.Set(field, protoreflect.ValueOfString(orders))
		}
	}
	field := path[0]
	switch {
	case field.IsMap():
		of := message.Mutable(field).Map()
		of.Set(protoreflect.ValueOfString(text).MapKey(), of.NewValue())
	case len(path) > 1 && field.IsList():
		list := message.Mutable(field).List()
		element := list.AppendMutable()
		setText(element.Message(), path[1:], text)
	case len(path) > 1:
		setText(message.Mutable(field).Message(), path[1:], text)
	case field.IsList():
		message.Mutable(field).List().Append(protoreflect.ValueOfString(text))
	default:
		message.Set(field, protoreflect.ValueOfString(text))
	}
}
