package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
)

func connections(n int) func(*proxy.Config) {
	return func(c *proxy.Config) { c.MaxConnections = n }
}

// rawConn is a connection that a test speaks HTTP over by hand.
type rawConn struct {
	net.Conn
	in *bufio.Reader
}

func rawDial(t *testing.T, addr net.Addr) *rawConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &rawConn{conn, bufio.NewReader(conn)}
}

// ask writes a request, or as much of its body as there is.
func (c *rawConn) ask(t *testing.T, method, path string, length int, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, path, length, body); err != nil {
		t.Fatal(err)
	}
}

// answer reads one answer. ok is false when the connection ended before it.
func (c *rawConn) answer(t *testing.T) (a answer, ok bool) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	a, err := c.read()
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		t.Fatal(err)
	}
	return a, err == nil
}

func (c *rawConn) read() (answer, error) {
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answer{body: err.Error()}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	if response.Close {
		response.Header.Set("Connection", "close")
	}
	return answer{response.StatusCode, response.Header, string(text)}, err
}

// poll begins a receive that waits, on a connection of its own, and gives the answer to come.
func poll(t *testing.T, s *sidecar) <-chan answer {
	t.Helper()
	c := rawDial(t, s.proxy.HTTPAddr())
	const body = `{"maxWait":"60s"}`
	c.ask(t, http.MethodPost, verbPath+"receive", len(body), body)
	came := make(chan answer, 1)
	go func() {
		a, _ := c.read()
		came <- a
	}()
	return came
}

// isBusy begins a request on a connection of its own whose body never comes whole.
func isBusy(t *testing.T, s *sidecar) *rawConn {
	t.Helper()
	c := rawDial(t, s.proxy.HTTPAddr())
	c.ask(t, http.MethodPost, verbPath+"send", 1000, "{")
	return c
}

// busyStore takes its time for the queue "busy".
type busyStore struct {
	store

	until chan struct{}
}

// GetEntity blocks for that queue.
func (b *busyStore) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if strings.HasSuffix(path, "busy") {
		<-b.until
	}
	return b.store.GetEntity(ctx, kind, path)
}

// ownAddresses are the IPv4 addresses of this machine.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, addr := range all {
		if network, ok := addr.(*net.IPNet); ok && network.IP.To4() != nil {
			own = append(own, network.IP.String())
		}
	}
	return own
}
