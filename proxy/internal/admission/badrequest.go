package admission

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// plainHeader is what net/http puts behind the status line of a refusal of its own: of a request that it cannot read,
// for which there is no handler to ask. All others have more of a header.
const plainTextHeader = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// withReason gives a refusal of net/http the body that all refusals have (ERR-1). It reports false for all other
// answers.
func toJSONError(p []byte) (answer []byte, ok bool) {
	statusLine, text, ok := bytes.Cut(p, []byte(plainTextHeader))
	if !ok || bytes.ContainsRune(statusLine, '\r') {
		return nil, false
	}
	e := semantics.Errorf(
		semantics.InvalidArgument,
		"the request cannot be read, its path, its header or its length is malformed or too long: %s; "+
			"a \"%%\" in a name is written %%25",
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
