package client

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
)

// Values returns application properties as the HTTP API writes them.
func Values(values map[string]*sidebusv1.Value) []byte {
	text := JSON(&sidebusv1.Message{Properties: values})
	return bytes.TrimSuffix(bytes.TrimPrefix(text, []byte(`{"properties":`)), []byte(`}`))
}

// JSON returns a message as the HTTP API writes it, in one line.
func JSON(m proto.Message) []byte {
	var line bytes.Buffer
	written := wirejson.Encode(m)
	if json.Compact(&line, written) != nil { // a body of another kind than its field says
		return written
	}
	return line.Bytes()
}
