package admission

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/admission/internal/counts"
	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// HTTP returns a listener for an http.Server that uses ConnState, ConnContext and Handler of the Controller.
func (ctl *Controller) HTTP(listener net.Listener) net.Listener { return &httpListener{listener, ctl} }

type httpListener struct {
	net.Listener
	controller *Controller
}

// Accept returns the next connection that is admitted.
func (l *httpListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &httpConn{l.controller.newConn(conn)}
		c.counts = counts.NewConnection(l.controller.connections, obs.HTTP, func() { _ = conn.Close() }, nil)
		if l.controller.admit(c.counts, true) {
			return c, nil
		}
		_ = conn.Close() // no call has used it
	}
}

// httpConn is a connection of the HTTP server.
type httpConn struct{ *Conn }

// Write writes a response or a part of it.
func (c *httpConn) Write(p []byte) (int, error) {
	answer, ok := toJSONError(p)
	if !ok {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Underlying returns the connection that an HTTP connection of a Controller wraps.
func Underlying(conn net.Conn) (below net.Conn, ok bool) {
	if c, ok := conn.(*httpConn); ok {
		return c.Conn.Conn, true
	}
	return nil, false
}

// ConnState counts calls. It is for http.Server.ConnState.
func (ctl *Controller) ConnState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*httpConn)
	if !ok {
		return
	}
	switch state { //nolint:exhaustive // the others change nothing
	case http.StateActive:
		c.counts.CallStarted()
	case http.StateIdle:
		c.counts.CallEnded()
	}
}

// httpRequest is the state of one HTTP request.
type httpRequest struct {
	controller *Controller
	conn       *Conn
	writer     http.ResponseWriter
	refusal    *semantics.Error
	deadline   time.Time // for the body
	allocated  allocation
	response   int64 // bytes allocated for the response
	waiting    *obs.Call
	size       int64 // of the body, as far as memory is allocated for it
}

type (
	requestKey struct{}
	connKey    struct{}
)

// ConnContext adds the connection to the context of its requests. It is for http.Server.ConnContext.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*httpConn); ok {
		return context.WithValue(ctx, connKey{}, c.Conn)
	}
	return ctx
}

// Handler returns a handler that counts requests and calls next. It refuses nothing itself: next must check Refusal,
// and answer in the format of its API.
func (ctl *Controller) Handler(names *hosts.Hosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &httpRequest{controller: ctl, writer: w}
		v.conn, _ = r.Context().Value(connKey{}).(*Conn)
		defer func() {
			v.requestHandled()
			ctl.memory.releaseResponse(&v.response, v.response)
		}()
		switch {
		case v.conn != nil && v.conn.counts.IsExcess():
			w.Header().Set("Connection", "close")
			v.refusal = semantics.Errorf(semantics.Throttled,
				"too many connections to this sidecar; use fewer and keep them open").
				With(semantics.DetailLimit, strconv.Itoa(ctl.maxConnections))
		default:
			v.refusal = names.Check(r)
		}
		v.deadline = SetBodyDeadline(w, r, ctl.readTimeout)
		if v.conn != nil && v.deadline.IsZero() {
			v.conn.counts.RequestRead()
		}
		ctx := semantics.WithMemory(context.WithValue(r.Context(), requestKey{}, v), v)
		if v.conn != nil {
			ctx, v.waiting = obs.WithCall(semantics.WithWaits(ctx, v))
		}
		resp, r := newEarlyResponse(v, r.WithContext(ctx))
		next.ServeHTTP(resp, r)
		v.requestHandled()
		resp.discardBody()
	})
}

// Refusal returns the reason to refuse the request of ctx, or nil.
func Refusal(ctx context.Context) *semantics.Error {
	if v, ok := ctx.Value(requestKey{}).(*httpRequest); ok {
		return v.refusal
	}
	return nil
}

// crossOrigin knows requests of web pages in a browser on this machine.
var crossOrigin http.CrossOriginProtection

// RefusalOfRequest returns the reason to refuse a request of an API, or nil: that of Refusal, or that a web page of
// another origin makes it.
func RefusalOfRequest(r *http.Request) *semantics.Error {
	if refused := Refusal(r.Context()); refused != nil {
		return refused
	}
	if crossOrigin.Check(r) != nil {
		return semantics.Errorf(semantics.PermissionDenied, "cross-origin requests are not permitted")
	}
	return nil
}

// Begin implements semantics.Waits. If the wait is ended early, the connection is closed after the response. Begin
// releases the memory of the request, which is decoded by now, so that waits do not use it up.
func (v *httpRequest) Begin() (ended <-chan struct{}, end func(), err error) {
	wait, err := v.conn.beginWait()
	if err != nil {
		return nil, nil, err
	}
	v.requestHandled()
	stopTimer := v.waiting.BeginWait()
	return wait.Ended, func() {
		stopTimer()
		if wait.End() {
			v.writer.Header().Set("Connection", "close")
		}
	}, nil
}

// requestHandled frees the memory of the request. It is called before the response is written: a client that has the
// response finds the memory free.
func (v *httpRequest) requestHandled() { v.controller.memory.release(&v.allocated) }

// bytesPerSecond is how many bytes of a request extend its timeout by one second.
const bytesPerSecond = 64 << 10

// timeoutFor returns how long a request of size bytes may take to arrive.
func timeoutFor(timeout time.Duration, size int64) time.Duration {
	return timeout + time.Duration(max(size, 0)/bytesPerSecond)*time.Second
}

// SetBodyDeadline sets the deadline for reading the body of r, and returns it; zero if there is no body. The server
// removes it after the request.
func SetBodyDeadline(w http.ResponseWriter, r *http.Request, timeout time.Duration) (deadline time.Time) {
	if r.Body == nil || r.Body == http.NoBody {
		return time.Time{}
	}
	deadline = time.Now().Add(timeoutFor(timeout, r.ContentLength))
	_ = http.NewResponseController(w).SetReadDeadline(deadline) // fails only in tests without a connection
	return deadline
}

// ReadBody reads the body of r, at most limit bytes, and allocates memory for it. what names the body in the error
// MESSAGE_SIZE_EXCEEDED. Other errors are THROTTLED if memory is used up, SERVICE_TIMEOUT if the body is late,
// INVALID_ARGUMENT if it is malformed, and CANCELLED if the connection breaks.
func ReadBody(w http.ResponseWriter, r *http.Request, what string, limit int64) ([]byte, *semantics.Error) {
	if r.ContentLength > limit {
		return nil, semantics.HTTPBodyTooLarge(what, r.ContentLength, limit)
	}
	v, _ := r.Context().Value(requestKey{}).(*httpRequest)
	if v == nil {
		v = &httpRequest{}
	}
	if err := v.acquire(max(r.ContentLength, 0)); err != nil {
		return nil, err
	}
	buffer := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	reader := &bodyReader{Reader: http.MaxBytesReader(w, r.Body, limit), request: v, left: r.ContentLength}
	_, err := buffer.ReadFrom(reader)
	if err == nil {
		v.bodyRead(w)
		return buffer.Bytes(), nil
	}
	var refused *semantics.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case errors.As(err, &tooLarge):
		return nil, semantics.Errorf(semantics.MessageSizeExceeded,
			"%s is larger than %d bytes, the limit over HTTP; send less at a time, or use gRPC", what, limit).
			With(semantics.DetailField, what).
			With(semantics.DetailLimit, strconv.FormatInt(limit, 10))
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		if v.controller != nil {
			v.controller.metrics.RequestsLate.Inc()
		}
		return nil, &semantics.Error{
			Code: semantics.ServiceTimeout, Message: "the request body did not arrive in time; retry, or send less at a time",
			Err: wireerror.ErrBodyLate,
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, semantics.Errorf(semantics.InvalidArgument, "the body ended early")
	// the connection is open, so the chunks of the body are malformed
	case r.Context().Err() == nil && !errors.As(err, new(net.Error)):
		w.Header().Set("Connection", "close")
		return nil, semantics.Errorf(semantics.InvalidArgument, "the body cannot be read: %v", err)
	default:
		return nil, &semantics.Error{Code: semantics.Cancelled, Message: "the body could not be read", Err: err}
	}
}

// acquire allocates memory for n more bytes of the body.
func (v *httpRequest) acquire(n int64) *semantics.Error {
	if v.controller == nil || n == 0 {
		return nil
	}
	v.size += n
	if !v.controller.memory.acquire(&v.allocated, n*jsonFactor, v.size <= smallRequest) {
		v.controller.requestRefused()
		return RequestMemoryUsed()
	}
	return nil
}

// bodyRead removes the deadline for the body.
func (v *httpRequest) bodyRead(w http.ResponseWriter) {
	if !v.deadline.IsZero() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		if v.conn != nil {
			v.conn.counts.RequestRead()
		}
	}
}

// bodyReader allocates memory and extends the deadline while a body of unknown length arrives.
type bodyReader struct {
	io.Reader
	request *httpRequest
	left    int64 // length of the body; negative: unknown, so each piece needs memory
}

// Read reads a part of the body.
func (a *bodyReader) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if a.left >= 0 || n == 0 {
		return n, err
	}
	if refused := a.request.acquire(int64(n)); refused != nil {
		return 0, refused
	}
	if !a.request.deadline.IsZero() {
		a.request.deadline = a.request.deadline.Add(time.Duration(n) * time.Second / bytesPerSecond)
		_ = http.NewResponseController(a.request.writer).SetReadDeadline(a.request.deadline)
	}
	return n, err
}
