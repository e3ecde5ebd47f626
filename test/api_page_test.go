package test

import (
	"regexp"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// The table of the native API in docs/spec/api.md has every RPC on messages and sessions; those of Admin are families.
func TestAPIPageHasEveryRPC(t *testing.T) {
	t.Parallel()
	page := readPage(t, "docs/spec/api.md")
	for _, file := range []protoreflect.FileDescriptor{
		sidebusv1.File_sidebus_v1_messages_proto, sidebusv1.File_sidebus_v1_sessions_proto,
		sidebusv1.File_sidebus_v1_calls_proto,
	} {
		service := file.Services().Get(0)
		for i := range service.Methods().Len() {
			rpc := string(service.Methods().Get(i).Name())
			row := regexp.MustCompile(`(?m)^\| ` + "`" + string(service.Name()) + `\.[^|]*\b` + rpc + `\b`)
			if !row.MatchString(page) {
				t.Errorf("%s.%s has no row", service.Name(), rpc)
			}
		}
	}
}
