package redistest

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Cutter is a line to Redis that can be cut.
type Cutter struct {
	URL    string      // of the line
	Deaf   atomic.Bool // requests go through, answers do not: what gets one loses its connection
	Silent atomic.Bool // requests go through, answers do not: what waits for one waits on

	listener net.Listener
	mu       sync.Mutex
	isCut    bool
	conns    []net.Conn
}

// OpenCutter opens a line to a Redis on a unix socket.
func OpenCutter(t testing.TB, url string) *Cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cutter{URL: "redis://" + listener.Addr().String(), listener: listener}
	t.Cleanup(c.Cut)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", strings.TrimPrefix(url, "unix://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			c.keep(client, server)
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go c.answer(client, server)
		}
	}()
	return c
}

// Cut ends the line for good, as the end of its process does.
func (c *Cutter) Cut() {
	_ = c.listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func (c *Cutter) keep(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conns...)
	for _, conn := range conns {
		if c.isCut {
			_ = conn.Close()
		}
	}
}

func (c *Cutter) answer(client, server net.Conn) {
	defer client.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || c.Deaf.Load() {
			return // Redis has done its work; the answer is lost
		}
		if c.Silent.Load() {
			continue
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
