package admission

import (
	"io"
	"net/http"
	"strings"
)

// maxDiscard is how many bytes of a refused request are read and discarded. If the request is longer, the connection is
// closed.
const maxDiscard = 64 << 20

// earlyResponse writes a response that may be sent before the request has arrived, such as an error. The response is
// sent at once, then the rest of the request is discarded: most clients send everything before they read, and would get
// a connection reset instead of the response. Discarding needs no memory and is bounded by the deadline of the body.
type earlyResponse struct {
	http.ResponseWriter

	of            *httpRequest
	request       *http.Request
	bodyRequested bool // the handler has read from the body
	discards      bool
}

// trackedBody is a request body that notes when it is read.
type trackedBody struct {
	io.ReadCloser

	response *earlyResponse
}

// Read reads from the body.
func (a trackedBody) Read(p []byte) (int, error) {
	a.response.bodyRequested = true
	return a.ReadCloser.Read(p)
}

// newEarlyResponse returns an earlyResponse of a request, and the request to serve with it.
func newEarlyResponse(of *httpRequest, r *http.Request) (*earlyResponse, *http.Request) {
	a := &earlyResponse{ResponseWriter: of.writer, of: of, request: r}
	if r.Body == nil || r.Body == http.NoBody {
		a.request = nil
		return a, r
	}
	with := r.WithContext(r.Context()) // the request of the server must not change
	with.Body = trackedBody{r.Body, a}
	return a, with
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (a *earlyResponse) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader starts the response. It switches errors to full duplex, because net/http otherwise reads up to 256 KiB of
// the request first.
func (a *earlyResponse) WriteHeader(status int) {
	a.of.requestHandled()
	if status >= http.StatusBadRequest && a.request != nil && !a.awaitsContinue() && a.Header().Get("Connection") != "close" {
		a.discards = http.NewResponseController(a.ResponseWriter).EnableFullDuplex() == nil
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes to the body of the response.
func (a *earlyResponse) Write(p []byte) (int, error) {
	a.of.requestHandled()
	return a.ResponseWriter.Write(p)
}

// awaitsContinue reports whether the client waits for "100 Continue" and has not got it, so that it sends no body.
func (a *earlyResponse) awaitsContinue() bool {
	return !a.bodyRequested && strings.EqualFold(a.request.Header.Get("Expect"), "100-continue")
}

// discardBody sends the response and discards the rest of the request.
func (a *earlyResponse) discardBody() {
	if !a.discards {
		return
	}
	if http.NewResponseController(a.ResponseWriter).Flush() == nil {
		_, _ = io.CopyN(io.Discard, a.request.Body, maxDiscard)
	}
}
