package compat

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
)

// net/http canonicalizes header names, "order-ID" to "Order-Id". Names of application properties keep their case
// (MSG-14), so a spelledConn parses what the server reads, request by request, and records the names. If it cannot
// parse a request, it stops for that connection, and names are canonical from then on.

// Limits of what is recorded for a connection.
const (
	maxRequestLine = 16 << 10
	maxHeaderStart = 1 << 10 // of a header line: the name, and the value of headers about body length
	maxHeads       = 16      // pipelined requests, and those that this package does not handle
)

// NewListener returns a listener whose connections record header names; see Spelled.
func NewListener(listener net.Listener) net.Listener { return &spelledListener{listener} }

type spelledListener struct{ net.Listener }

// Accept returns the next connection.
func (l *spelledListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &spelledConn{Conn: conn}
	c.read = c.requestLine
	return c, nil
}

// NetConn returns the connection below.
func (c *spelledConn) NetConn() net.Conn { return c.Conn }

type spellingKey struct{}

// Spelled adds the recorded names of a connection to the context of its requests. It does nothing if conn is not from a
// listener of NewListener.
func Spelled(ctx context.Context, conn net.Conn) context.Context {
	if s, ok := conn.(*spelledConn); ok {
		return context.WithValue(ctx, spellingKey{}, s)
	}
	return ctx
}

// spellingOf returns the header names of a request as written, by canonical name, where the two differ.
func spellingOf(r *http.Request) map[string]string {
	if conn, ok := r.Context().Value(spellingKey{}).(*spelledConn); ok {
		return conn.take(r.Method + " " + r.RequestURI + " " + r.Proto)
	}
	return nil
}

// head is what is recorded of a request.
type head struct {
	request string // its first line
	names   map[string]string
}

type spelledConn struct {
	net.Conn

	mu    sync.Mutex
	read  func(p []byte) (rest []byte) // parses what comes next; nil: parsing has stopped
	heads []head                       // not yet taken, oldest first

	line      []byte // the current line so far, truncated
	isNative  bool   // a request for the native API, which needs no names
	isOld     bool   // an HTTP/1.0 request
	current   head
	length    int64 // of the body, by its header
	isChunked bool
	left      int64 // of the body or chunk
}

// Read reads from the connection.
func (c *spelledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.follow(p[:n])
	return n, err
}

// take returns the names of the request with that first line, and forgets it and earlier ones. It must be called for
// every request, since later ones may have the same first line.
func (c *spelledConn) take(request string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range c.heads {
		if h.request == request {
			c.heads = c.heads[i+1:]
			return h.names
		}
	}
	return nil
}

func (c *spelledConn) follow(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 && c.read != nil {
		p = c.read(p)
	}
}

// stopParsing ends parsing for good.
func (c *spelledConn) stopParsing() []byte {
	c.read, c.heads, c.current, c.line = nil, nil, head{}, nil
	return nil
}

// readLine collects a line and returns it without its end. A line longer than most is truncated.
func (c *spelledConn) readLine(p []byte, most int) (line, rest []byte, isWhole bool) {
	part, rest, isWhole := bytes.Cut(p, []byte("\n"))
	c.line = append(c.line, part[:min(len(part), most-min(len(c.line), most))]...)
	if !isWhole {
		return nil, nil, false
	}
	line = bytes.TrimSuffix(c.line, []byte("\r"))
	c.line = c.line[:0]
	return line, rest, true
}

func (c *spelledConn) requestLine(p []byte) []byte {
	line, rest, isWhole := c.readLine(p, maxRequestLine)
	switch {
	case !isWhole || len(line) == 0: // a blank line may follow a body
		return rest
	case len(line) >= maxRequestLine-1 || bytes.HasPrefix(line, []byte("PRI ")):
		return c.stopParsing()
	}
	c.current, c.length, c.isChunked = head{}, 0, false
	c.isNative, c.isOld = bytes.Contains(line, []byte(" "+nativePrefix)), !bytes.HasSuffix(line, []byte(" HTTP/1.1"))
	if !c.isNative {
		c.current.request = string(line)
	}
	c.read = c.headerLine
	return rest
}

func (c *spelledConn) headerLine(p []byte) []byte {
	line, rest, isWhole := c.readLine(p, maxHeaderStart)
	switch {
	case !isWhole:
		return rest
	case len(line) == 0:
		c.endOfHead()
		return rest
	}
	name, value, hasName := bytes.Cut(line, []byte(":"))
	if !hasName || line[0] == ' ' || line[0] == '\t' { // a continuation line, or a name that is too long
		return rest
	}
	if c.isNative && len(name) != len(contentLength) && len(name) != len(transferEncoding) {
		return rest
	}
	canonical := textproto.CanonicalMIMEHeaderKey(string(name))
	if !c.noteLength(canonical, strings.TrimSpace(string(value))) {
		return c.stopParsing()
	}
	if !c.isNative && canonical != string(name) {
		if c.current.names == nil {
			c.current.names = map[string]string{}
		}
		c.current.names[canonical] = string(name)
	}
	return rest
}

// Headers about the length of the body.
const (
	contentLength    = "Content-Length"
	transferEncoding = "Transfer-Encoding"
)

// noteLength records a header about the length of the body. It reports false for values that net/http refuses or
// interprets differently.
func (c *spelledConn) noteLength(canonical, value string) bool {
	switch canonical {
	case transferEncoding:
		c.isChunked = strings.EqualFold(value, "chunked") && !c.isOld
		return c.isChunked
	case contentLength:
		n, err := strconv.ParseUint(value, 10, 63)
		c.length = int64(n) //nolint:gosec // of 63 bits
		return err == nil
	default:
		return true
	}
}

func (c *spelledConn) endOfHead() {
	if !c.isNative {
		if len(c.heads) == maxHeads {
			c.heads = c.heads[1:]
		}
		c.heads = append(c.heads, c.current)
	}
	switch {
	case c.isChunked:
		c.read = c.chunkLine
	case c.length > 0:
		c.left, c.read = c.length, c.body
	default:
		c.read = c.requestLine
	}
}

func (c *spelledConn) body(p []byte) []byte { return c.skip(p, c.requestLine) }

func (c *spelledConn) chunkLine(p []byte) []byte {
	line, rest, isWhole := c.readLine(p, maxHeaderStart)
	if !isWhole {
		return rest
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(strings.TrimSpace(string(size)), 16, 62)
	switch {
	case err != nil:
		return c.stopParsing()
	case n == 0:
		c.read = c.trailerLine
	default:
		c.left, c.read = int64(n)+2, c.chunk //nolint:gosec // of 62 bits, and the end of the line
	}
	return rest
}

func (c *spelledConn) chunk(p []byte) []byte { return c.skip(p, c.chunkLine) }

func (c *spelledConn) trailerLine(p []byte) []byte {
	line, rest, isWhole := c.readLine(p, maxHeaderStart)
	if isWhole && len(line) == 0 {
		c.read = c.requestLine
	}
	return rest
}

// skip skips the rest of a body or chunk, then continues with next.
func (c *spelledConn) skip(p []byte, next func([]byte) []byte) []byte {
	n := min(c.left, int64(len(p)))
	if c.left -= n; c.left == 0 {
		c.read = next
	}
	return p[n:]
}
