package admission

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// plainTextHeader follows the status line when net/http itself rejects a request that it cannot parse, before any
// handler runs. All other responses have more headers.
const plainTextHeader = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// toJSONError converts such a rejection to the error body of the API (ERR-1). It reports false for other responses.
func toJSONError(p []byte) (answer []byte, ok bool) {
	statusLine, text, ok := bytes.Cut(p, []byte(plainTextHeader))
	if !ok || bytes.ContainsRune(statusLine, '\r') {
		return nil, false
	}
	e := semantics.Errorf(
		semantics.InvalidArgument,
		"the request is malformed: its path, a header or its length is invalid or too long: %s; "+
			"write \"%%\" in a name as %%25",
		bytes.ToValidUTF8(text, nil),
	)
	_, body, _ := wireerror.HTTP(e)
	reason, err := json.Marshal(body)
	if err != nil {
		return nil, false
	}
	const header = "%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
	return fmt.Appendf(nil, header, statusLine, len(reason), reason), true
}
