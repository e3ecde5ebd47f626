package client

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proxy/httpapi"
)

// JSON gives a message as the HTTP API writes it, in one line.
func JSON(m proto.Message) []byte {
	var line bytes.Buffer
	written := httpapi.Encode(m)
	if json.Compact(&line, written) != nil { // a body of another kind than its field says
		return written
	}
	return line.Bytes()
}
