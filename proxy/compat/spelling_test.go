package compat

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pieces is a connection that gives what it has in pieces of some size.
type pieces struct {
	net.Conn

	left []byte
	size int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.left[:min(p.size, len(p.left))])
	p.left = p.left[n:]
	return n, nil
}

type oneConn struct {
	net.Listener

	conn net.Conn
}

func (l oneConn) Accept() (net.Conn, error) { return l.conn, nil }

// spellings reads requests from a stream as a server does, and gives the names of their headers as they were found.
func spellings(t *testing.T, stream string, size int) (names []map[string]string) {
	t.Helper()
	conn, err := NewListener(oneConn{conn: &pieces{left: []byte(stream), size: size}}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx := Spelled(t.Context(), conn)
	reader := bufio.NewReaderSize(conn, 32)
	for {
		for next, _ := reader.Peek(1); len(next) > 0 && strings.Contains("\r\n", string(next)); next, _ = reader.Peek(1) {
			_, _ = reader.Discard(1) // a server bears with blank lines after a body
		}
		r, err := http.ReadRequest(reader)
		if err != nil {
			return names
		}
		names = append(names, spellingOf(r.WithContext(ctx)))
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMSG_14_NamesOfHeadersKeepTheirCase(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	stream := "POST /q/messages HTTP/1.1\r\nHost: x\r\norderID: 7\r\nCOLOR:red\r\ncontent-length: 15\r\n\r\nstolen: header\n" +
		"POST /q/messages HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: Chunked\r\nlong: " + long + "\r\nafter: x\r\n\r\n5;ext=1\r\nab: c\r\n09\r\nx: y\nz: 1\r\n0\r\ntrailer: x\r\n\r\n" +
		"\r\nPOST /v1/queues/q/messages:send HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}" +
		"DELETE /q/messages/head HTTP/1.1\nhost: x\nCanonical: y\n folded: z\n\n" +
		"POST /q/messages HTTP/1.0\r\nlast: x\r\n\r\n"
	want := []map[string]string{
		{"Orderid": "orderID", "Color": "COLOR", "Content-Length": "content-length"},
		{"Host": "host", "Long": "long", "After": "after"},
		nil,
		{"Host": "host"},
		{"Last": "last"},
	}
	for _, size := range []int{1, 2, 3, 7, 64, 1 << 20} {
		if diff := cmp.Diff(want, spellings(t, stream, size)); diff != "" {
			t.Errorf("in pieces of %d (-want +got)\n%s", size, diff)
		}
	}
}

func TestMSG_14_StrangeRequestsHaveCanonicalNames(t *testing.T) {
	t.Parallel()
	conn := &spelledConn{}
	for name, stream := range map[string]string{
		"long request line": "POST /" + strings.Repeat("x", maxRequestLine) + " HTTP/1.1\r\na: b\r\n\r\n",
		"HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"two lengths":       "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
		"other encoding":    "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"old and chunked":   "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"broken chunk":      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
	} {
		conn.read = conn.requestLine
		conn.follow([]byte(stream))
		if conn.read != nil || conn.heads != nil || conn.line != nil {
			t.Errorf("%s: it is still followed", name)
		}
		conn.follow([]byte("GET / HTTP/1.1\r\na: b\r\n\r\n"))
		if names := conn.take("GET / HTTP/1.1"); names != nil {
			t.Errorf("%s: got %v", name, names)
		}
	}
}

func TestMSG_14_RequestsThatNobodyAsksForAreForgotten(t *testing.T) {
	t.Parallel()
	conn := &spelledConn{}
	conn.read = conn.requestLine
	for range 3 * maxHeads {
		conn.follow([]byte("GET /other HTTP/1.1\r\na: b\r\n\r\n"))
	}
	if len(conn.heads) != maxHeads {
		t.Errorf("%d are kept", len(conn.heads))
	}
	conn.follow([]byte("GET /ours HTTP/1.1\r\na: b\r\n\r\n"))
	if got := conn.take("GET /ours HTTP/1.1"); got["A"] != "a" || len(conn.heads) != 0 {
		t.Errorf("got %v, and %d are kept", got, len(conn.heads))
	}
}

// Whatever comes, names are those of the request, or none; what the server reads is what came.
func FuzzSpelling(f *testing.F) {
	f.Add([]byte("a: b\r\nContent-Length: 3\r\n\r\nabcPOST /y HTTP/1.1\r\nb: c\r\n\r\n"), 3)
	f.Add([]byte("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nPOST /y HTTP/1.1\r\nb: c\r\n\r\n"), 1)
	f.Add([]byte("a: b\n c: d\n\n\r\n\r\nPOST /x HTTP/1.1\nX: y\n\n"), 2)
	f.Fuzz(func(t *testing.T, rest []byte, size int) {
		stream := append([]byte("POST /x HTTP/1.1\r\nHost: x\r\n"), rest...)
		conn, err := NewListener(oneConn{conn: &pieces{left: bytes.Clone(stream), size: max(size, 1)}}).Accept()
		if err != nil {
			t.Fatal(err)
		}
		ctx := Spelled(t.Context(), conn)
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			for canonical, name := range spellingOf(r.WithContext(ctx)) {
				if textproto.CanonicalMIMEHeaderKey(name) != canonical || !strings.Contains(string(stream), name+":") {
					t.Errorf("%q for %q in %q", name, canonical, stream)
				}
				if _, ok := r.Header[canonical]; !ok && canonical != "Host" && canonical != "Content-Length" && canonical != "Transfer-Encoding" && canonical != "Trailer" {
					t.Errorf("%q was not sent: %s", canonical, fmt.Sprint(r.Header))
				}
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
		}
	})
}
