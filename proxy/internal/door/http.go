package door

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
func (d *Door) HTTP(listener net.Listener) net.Listener { return &httpListener{listener, d} }

type httpListener struct {
	net.Listener
	door *Door
}

// Accept gives the next connection that is to be served.
func (l *httpListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &httpConn{&Conn{Conn: conn, door: l.door, wire: obs.HTTP}}
		c.dismiss = func() { _ = conn.Close() }
		l.door.metrics.Connections.WithLabelValues(c.wire).Inc()
		if l.door.admit(c.Conn, true) {
			return c, nil
		}
		l.door.metrics.Connections.WithLabelValues(c.wire).Dec()
		_ = conn.Close() // it was never used
	}
}

// httpConn is a connection over HTTP.
type httpConn struct{ *Conn }

// Write writes an answer, or a part of it.
func (c *httpConn) Write(p []byte) (int, error) {
	answer, ok := withReason(p)
	if !ok {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Below gives the connection on which an HTTP connection of a Door stands.
func Below(conn net.Conn) (below net.Conn, ok bool) {
	if c, ok := conn.(*httpConn); ok {
		return c.Conn.Conn, true
	}
	return nil, false
}

// ConnState is for the server of the connections.
func (d *Door) ConnState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*httpConn)
	if !ok {
		return
	}
	switch state { //nolint:exhaustive // the others change nothing
	case http.StateActive:
		c.begin()
	case http.StateIdle:
		c.end()
	}
}

// visit is one request over HTTP.
type visit struct {
	door    *Door
	conn    *Conn
	writer  http.ResponseWriter
	refused *semantics.Error
	until   time.Time // the body must be there
	held    share
	answer  int64 // memory of the answer
	waiting *obs.Waiting
	size    int64 // of the body as far as there is memory for it
}

type (
	visitKey struct{}
	connKey  struct{}
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
func (d *Door) Handler(names *hosts.Hosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{door: d, writer: w}
		v.conn, _ = r.Context().Value(connKey{}).(*Conn)
		defer func() {
			d.Bytes.give(&v.held)
			d.Bytes.giveAnswer(&v.answer, v.answer)
		}()
		switch {
		case v.conn != nil && v.conn.IsOver():
			w.Header().Set("Connection", "close")
			v.refused = semantics.Errorf(semantics.Throttled,
				"too many connections to this sidecar; use fewer and keep them open").
				With(semantics.DetailLimit, strconv.Itoa(d.limit))
		default:
			v.refused = names.Check(r)
		}
		v.until = Hurry(w, r, d.patience)
		if v.conn != nil && v.until.IsZero() {
			v.conn.came()
		}
		ctx := semantics.WithMemory(context.WithValue(r.Context(), visitKey{}, v), v)
		if v.conn != nil {
			ctx, v.waiting = obs.WithWaiting(semantics.WithWaits(ctx, v))
		}
		answer, r := withRest(w, r.WithContext(ctx))
		next.ServeHTTP(answer, r)
		d.Bytes.give(&v.held)
		answer.drop()
	})
}

// Refusal gives why a request is to be refused, nil when it is not.
func Refusal(ctx context.Context) *semantics.Error {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.refused
	}
	return nil
}

// Begin is semantics.Waits. A connection whose wait was ended for another one is closed after the answer. The request
// is decoded by now, so a wait holds none of its memory: it would keep that from calls that do something.
func (v *visit) Begin() (enough <-chan struct{}, end func(), err error) {
	enough, stop, err := v.conn.beginWait()
	if err != nil {
		return nil, nil, err
	}
	v.door.Bytes.give(&v.held)
	measured := v.waiting.Begin()
	return enough, func() {
		measured()
		if stop() {
			v.writer.Header().Set("Connection", "close")
		}
	}, nil
}

// step is for how many bytes of a request there is a second more.
const step = 64 << 10

// patienceFor gives how long a request of so many bytes may take to arrive.
func patienceFor(patience time.Duration, size int64) time.Duration {
	return patience + time.Duration(max(size, 0)/step)*time.Second
}

// Hurry sets until when the body of a request must be there, whether it is read or not. The server ends that with the
// request.
func Hurry(w http.ResponseWriter, r *http.Request, patience time.Duration) (until time.Time) {
	if r.Body == nil || r.Body == http.NoBody {
		return time.Time{}
	}
	until = time.Now().Add(patienceFor(patience, r.ContentLength))
	_ = http.NewResponseController(w).SetReadDeadline(until) // a connection without deadlines is one of a test
	return until
}

// ReadBody reads a body of at most limit bytes, for which there is memory, in the time it has. what is the thing that
// would be larger.
func ReadBody(w http.ResponseWriter, r *http.Request, what string, limit int64) ([]byte, *semantics.Error) {
	if r.ContentLength > limit {
		return nil, semantics.HTTPBodyTooLarge(what, r.ContentLength, limit)
	}
	v, _ := r.Context().Value(visitKey{}).(*visit)
	if v == nil {
		v = &visit{}
	}
	if err := v.take(max(r.ContentLength, 0)); err != nil {
		return nil, err
	}
	buffer := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
	_, err := buffer.ReadFrom(&arriving{Reader: http.MaxBytesReader(w, r.Body, limit), visit: v, left: r.ContentLength})
	if err == nil {
		v.arrived(w)
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
		if v.door != nil {
			v.door.metrics.RequestsLate.Inc()
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
func (v *visit) take(n int64) *semantics.Error {
	if v.door == nil || n == 0 {
		return nil
	}
	v.size += n
	if !v.door.Bytes.take(&v.held, n*jsonWeight, v.size <= smallRequest) {
		v.door.tooMuch()
		return NoMemory()
	}
	return nil
}

// arrived ends the hurry.
func (v *visit) arrived(w http.ResponseWriter) {
	if !v.until.IsZero() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		if v.conn != nil {
			v.conn.came()
		}
	}
}

// arriving takes memory and time for a body of unknown length as it comes.
type arriving struct {
	io.Reader
	visit *visit
	left  int64 // bytes for which there is memory; less than 0: the length is unknown, so the next bytes need some
}

// Read reads a part of the body.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if a.left >= 0 || n == 0 {
		return n, err
	}
	if refused := a.visit.take(int64(n)); refused != nil {
		return 0, refused
	}
	if !a.visit.until.IsZero() {
		a.visit.until = a.visit.until.Add(time.Duration(n) * time.Second / step)
		_ = http.NewResponseController(a.visit.writer).SetReadDeadline(a.visit.until)
	}
	return n, err
}
