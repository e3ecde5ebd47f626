package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// A client of the probe address needs to prove nothing. Connections that it holds open use no more memory than a few, and
// the probes of the kubelet are answered.
func TestManyConnectionsToTheProbesKeepNoneFromThem(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.ProbeAddr = "127.0.0.1:0" })
	for _, addr := range []net.Addr{s.proxy.ProbeAddr(), s.proxy.AdminAddr()} {
		var held []net.Conn
		for range 200 {
			conn, err := net.Dial("tcp", addr.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			held = append(held, conn) // and nothing is read
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + addr.String() + "/liveness")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("a probe is answered with %d", answer.StatusCode)
		}
		closed := 0
		for _, conn := range held[:100] { // the oldest
			if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err == nil || !isTimeout(err) {
				closed++
			}
		}
		if closed != 100 {
			t.Errorf("%d of the 100 oldest connections are closed", closed)
		}
		// The newest one is open: it can ask again.
		last := held[len(held)-1]
		answers := bufio.NewReader(last)
		for range 2 {
			if _, err := io.WriteString(last, "GET /liveness HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, answer.Body)
			if err := errors.Join(err, answer.Body.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func isTimeout(err error) bool {
	var failed net.Error
	return errors.As(err, &failed) && failed.Timeout()
}
