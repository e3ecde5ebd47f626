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

	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// HTTP gives a listener for a server whose ConnState is that of the Door, and whose connections are found by ConnOf.
func (d *Controller) HTTP(listener net.Listener) net.Listener { return &httpListener{listener, d} }

type httpListener struct {
	net.Listener
	controller *Controller
}

// Accept gives the next connection that is to be served.
func (l *httpListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &httpConn{&Conn{Conn: conn, controller: l.controller, wire: obs.HTTP}}
		c.closeIdle = func() { _ = conn.Close() }
		l.controller.metrics.Connections.WithLabelValues(c.wire).Inc()
		if l.controller.admit(c.Conn, true) {
			return c, nil
		}
		l.controller.metrics.Connections.WithLabelValues(c.wire).Dec()
		_ = conn.Close() // it was never used
	}
}

// httpConn is a connection over HTTP.
type httpConn struct{ *Conn }

// Write writes an answer, or a part of it.
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

// Below gives the connection on which an HTTP connection of a Door stands.
func Underlying(conn net.Conn) (below net.Conn, ok bool) {
	if c, ok := conn.(*httpConn); ok {
		return c.Conn.Conn, true
	}
	return nil, false
}

// ConnState is for the server of the connections.
func (d *Controller) ConnState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*httpConn)
	if !ok {
		return
	}
	switch state { //nolint:exhaustive // the others change nothing
	case http.StateActive:
		c.callStarted()
	case http.StateIdle:
		c.callEnded()
	}
}

// visit is one request over HTTP.
type httpRequest struct {
	controller *Controller
	conn       *Conn
	writer     http.ResponseWriter
	refusal    *semantics.Error
	deadline   time.Time // the body must be there
	allocated  allocation
	response   int64 // memory of the answer
	waiting    *obs.WaitTimer
	size       int64 // of the body as far as there is memory for it
}

type (
	requestKey struct{}
	connKey    struct{}
)

// ConnContext is for the server of the connections.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*httpConn); ok {
		return context.WithValue(ctx, connKey{}, c.Conn)
	}
	return ctx
}

// Handler gives the handler that stands before all others. It refuses nothing by itself: what is to be refused is for
// the handlers behind it to answer in their own form, see Refusal.
func (d *Controller) Handler(names *hosts.Hosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &httpRequest{controller: d, writer: w}
		v.conn, _ = r.Context().Value(connKey{}).(*Conn)
		defer func() {
			d.memory.release(&v.allocated)
			d.memory.releaseResponse(&v.response, v.response)
		}()
		switch {
		case v.conn != nil && v.conn.IsExcess():
			w.Header().Set("Connection", "close")
			v.refusal = semantics.Errorf(semantics.Throttled,
				"too many connections to this sidecar; use fewer and keep them open").
				With(semantics.DetailLimit, strconv.Itoa(d.maxConnections))
		default:
			v.refusal = names.Check(r)
		}
		v.deadline = SetBodyDeadline(w, r, d.readTimeout)
		if v.conn != nil && v.deadline.IsZero() {
			v.conn.requestRead()
		}
		ctx := semantics.WithMemory(context.WithValue(r.Context(), requestKey{}, v), v)
		if v.conn != nil {
			ctx, v.waiting = obs.WithWaitTimer(semantics.WithWaits(ctx, v))
		}
		answer, r := newEarlyResponse(w, r.WithContext(ctx))
		next.ServeHTTP(answer, r)
		d.memory.release(&v.allocated)
		answer.discardBody()
	})
}

// Refusal gives why a request is to be refused, nil when it is not.
func Refusal(ctx context.Context) *semantics.Error {
	if v, ok := ctx.Value(requestKey{}).(*httpRequest); ok {
		return v.refusal
	}
	return nil
}

// Begin is semantics.Waits. A connection whose wait was ended for another one is closed after the answer. The request
// is decoded by now, so a wait holds none of its memory: it would keep that from calls that do something.
func (v *httpRequest) Begin() (enough <-chan struct{}, end func(), err error) {
	enough, stop, err := v.conn.beginWait()
	if err != nil {
		return nil, nil, err
	}
	v.controller.memory.release(&v.allocated)
	measured := v.waiting.Begin()
	return enough, func() {
		measured()
		if stop() {
			v.writer.Header().Set("Connection", "close")
		}
	}, nil
}

// step is for how many bytes of a request there is a second more.
const bytesPerSecond = 64 << 10

// patienceFor gives how long a request of so many bytes may take to arrive.
func timeoutFor(patience time.Duration, size int64) time.Duration {
	return patience + time.Duration(max(size, 0)/bytesPerSecond)*time.Second
}

// Hurry sets until when the body of a request must be there, whether it is read or not. The server ends that with the
// request.
func SetBodyDeadline(w http.ResponseWriter, r *http.Request, patience time.Duration) (until time.Time) {
	if r.Body == nil || r.Body == http.NoBody {
		return time.Time{}
	}
	until = time.Now().Add(timeoutFor(patience, r.ContentLength))
	_ = http.NewResponseController(w).SetReadDeadline(until) // a connection without deadlines is one of a test
	return until
}

// ReadBody reads a body of at most limit bytes, for which there is memory, in the time it has. what is the thing that
// would be larger.
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
	_, err := buffer.ReadFrom(&bodyReader{Reader: http.MaxBytesReader(w, r.Body, limit), request: v, left: r.ContentLength})
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
			"%s is larger than %d bytes; this is the bound of HTTP, so send less at a time, or over gRPC", what, limit).
			With(semantics.DetailField, what).
			With(semantics.DetailLimit, strconv.FormatInt(limit, 10))
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		if v.controller != nil {
			v.controller.metrics.RequestsLate.Inc()
		}
		return nil, &semantics.Error{
			Code: semantics.ServiceTimeout, Message: "the request's body did not arrive in time; send it faster",
			Err: wireerror.ErrBodyLate,
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, semantics.Errorf(semantics.InvalidArgument, "the body ended early")
	// the connection is there, so it is the body: its chunks are malformed
	case r.Context().Err() == nil && !errors.As(err, new(net.Error)):
		w.Header().Set("Connection", "close")
		return nil, semantics.Errorf(semantics.InvalidArgument, "the body cannot be read: %v", err)
	default:
		return nil, &semantics.Error{Code: semantics.Cancelled, Message: "the body could not be read", Err: err}
	}
}

// take takes memory for so many bytes of the body.
func (v *httpRequest) acquire(n int64) *semantics.Error {
	if v.controller == nil || n == 0 {
		return nil
	}
	v.size += n
	if !v.controller.memory.acquire(&v.allocated, n*jsonFactor, v.size <= smallRequest) {
		v.controller.requestRefused()
		return errRequestMemory()
	}
	return nil
}

// arrived ends the hurry.
func (v *httpRequest) bodyRead(w http.ResponseWriter) {
	if !v.deadline.IsZero() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		if v.conn != nil {
			v.conn.requestRead()
		}
	}
}

// arriving takes memory and time for a body of unknown length as it comes.
type bodyReader struct {
	io.Reader
	request *httpRequest
	left    int64 // bytes for which there is memory; less than 0: the length is unknown, so the next bytes need some
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
