package admission

import (
	"io"
	"net/http"
	"strings"
)

// maxRest is the most bytes that are read of a refused request. What is longer ends with its connection.
const maxDiscard = 64 << 20

// rest is the writer of an answer to a request that may be refused before it has arrived. The answer goes out at once,
// and what still comes of the request is dropped: a client that sends all before it reads, as most do, would find its
// connection reset in place of the answer. That takes no memory, and no more time than the request may take to arrive.
type earlyResponse struct {
	http.ResponseWriter

	request       *http.Request
	bodyRequested bool // the client was asked for its body
	discards      bool
}

// asked is the body of the request.
type trackedBody struct {
	io.ReadCloser

	response *earlyResponse
}

// Read reads a part of the body.
func (a trackedBody) Read(p []byte) (int, error) {
	a.response.bodyRequested = true
	return a.ReadCloser.Read(p)
}

// withRest makes a rest, and the request to go with it.
func newEarlyResponse(w http.ResponseWriter, r *http.Request) (*earlyResponse, *http.Request) {
	a := &earlyResponse{ResponseWriter: w, request: r}
	if r.Body == nil || r.Body == http.NoBody {
		a.request = nil
		return a, r
	}
	with := r.WithContext(r.Context()) // the server's own stays as it is
	with.Body = trackedBody{r.Body, a}
	return a, with
}

// Unwrap is for http.ResponseController.
func (a *earlyResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer. The server would read up to 256 KiB of the request before it, but for a duplex one.
func (a *earlyResponse) WriteHeader(status int) {
	if status >= http.StatusBadRequest && a.request != nil && !a.awaitsContinue() && a.Header().Get("Connection") != "close" {
		a.discards = http.NewResponseController(a.ResponseWriter).EnableFullDuplex() == nil
	}
	a.ResponseWriter.WriteHeader(status)
}

// waits reports whether the client waits to be asked for its body, and was not: then it sends nothing.
func (a *earlyResponse) awaitsContinue() bool {
	return !a.bodyRequested && strings.EqualFold(a.request.Header.Get("Expect"), "100-continue")
}

// drop ends the answer and drops what is left of the request.
func (a *earlyResponse) discardBody() {
	if !a.discards {
		return
	}
	if http.NewResponseController(a.ResponseWriter).Flush() == nil {
		_, _ = io.CopyN(io.Discard, a.request.Body, maxDiscard)
	}
}
