package wire

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// A newer client learns which of its fields an older sidecar does not know, and what to do.
func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	var encoded []byte
	for _, number := range []protowire.Number{900, 901, 900, 902, 903, 904, 905} {
		encoded = protowire.AppendTag(encoded, number, protowire.BytesType)
		encoded = protowire.AppendString(encoded, "x")
	}
	request := &sidebusv1.SendRequest{}
	request.ProtoReflect().SetUnknown(encoded)
	err := RefuseUnknown("request", request)
	if err == nil || !strings.Contains(err.Error(), "900, 901, 902, 903, 904 and others; upgrade the sidecar") {
		t.Errorf("got %v", err)
	}
	if err := RefuseUnknown("request", &sidebusv1.SendRequest{}); err != nil {
		t.Errorf("without unknown fields: %v", err)
	}
}
