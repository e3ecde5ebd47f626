package door

import (
	"io"
	"net/http"
	"strings"
)

// maxRest is the most bytes that are read of a refused request. What is longer ends with its connection.
const maxRest = 64 << 20

// rest is the writer of an answer to a request that may be refused before it has arrived. The answer goes out at once,
// and what still comes of the request is dropped: a client that sends all before it reads, as most do, would find its
// connection reset in place of the answer. That takes no memory, and no more time than the request may take to arrive.
type rest struct {
	http.ResponseWriter

	request *http.Request
	begun   bool // the client was asked for its body
	drops   bool
}

// asked is the body of the request.
type asked struct {
	io.ReadCloser

	rest *rest
}

// Read reads a part of the body.
func (a asked) Read(p []byte) (int, error) {
	a.rest.begun = true
	return a.ReadCloser.Read(p)
}

// withRest makes a rest, and the request to go with it.
func withRest(w http.ResponseWriter, r *http.Request) (*rest, *http.Request) {
	a := &rest{ResponseWriter: w, request: r}
	if r.Body == nil || r.Body == http.NoBody {
		a.request = nil
		return a, r
	}
	with := r.WithContext(r.Context()) // the server's own stays as it is
	with.Body = asked{r.Body, a}
	return a, with
}

// Unwrap is for http.ResponseController.
func (a *rest) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer. The server would read up to 256 KiB of the request before it, but for a duplex one.
func (a *rest) WriteHeader(status int) {
	if status >= http.StatusBadRequest && a.request != nil && !a.waits() && a.Header().Get("Connection") != "close" {
		a.drops = http.NewResponseController(a.ResponseWriter).EnableFullDuplex() == nil
	}
	a.ResponseWriter.WriteHeader(status)
}

// waits reports whether the client waits to be asked for its body, and was not: then it sends nothing.
func (a *rest) waits() bool {
	return !a.begun && strings.EqualFold(a.request.Header.Get("Expect"), "100-continue")
}

// drop ends the answer and drops what is left of the request.
func (a *rest) drop() {
	if !a.drops {
		return
	}
	if http.NewResponseController(a.ResponseWriter).Flush() == nil {
		_, _ = io.CopyN(io.Discard, a.request.Body, maxRest)
	}
}
