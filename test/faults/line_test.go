package faults

import (
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// line is the way of one sidecar to its Redis, on which bytes can be late, slow or lost.
type line struct {
	url      string
	server   string // its socket
	listener net.Listener
	work     sync.WaitGroup

	ill atomic.Pointer[illness]

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

// illness is what is wrong with a line.
type illness struct {
	delay      time.Duration // of all that is written, in either direction
	perSecond  int           // bytes, zero: as many as there are
	noRequests bool          // they vanish
	noAnswers  bool          // they vanish
	noDials    bool          // connections end at once
}

// openLine opens a line to the socket of a Redis. It ends with the test.
func openLine(t testing.TB, server string) *line {
	t.Helper()
	folder, err := os.MkdirTemp("", "sidebus-line-") //nolint:usetesting // names of tests are too long for a socket's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	l := &line{url: "unix://" + socket, server: server, conns: map[net.Conn]bool{}}
	l.ill.Store(&illness{})
	if l.listener, err = net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	}
	l.work.Go(l.serve)
	t.Cleanup(l.close)
	return l
}

func (l *line) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		if l.ill.Load().noDials {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("unix", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.carry(client, server, func(i *illness) bool { return i.noRequests })
		l.carry(server, client, func(i *illness) bool { return i.noAnswers })
	}
}

// carry carries bytes from one side to the other until either ends.
func (l *line) carry(from, to net.Conn, vanish func(*illness) bool) {
	l.keep(from)
	l.work.Go(func() {
		defer l.drop(from, to)
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			i := l.ill.Load()
			wait := i.delay
			if i.perSecond > 0 {
				wait += time.Duration(n) * time.Second / time.Duration(i.perSecond)
			}
			if wait > 0 {
				time.Sleep(wait) //nolint:forbidigo // this is the fault
			}
			if vanish(i) {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
}

func (l *line) keep(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = true
	if l.ended {
		_ = conn.Close()
	}
}

func (l *line) drop(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(l.conns, conn)
	}
}

// cut ends all connections; new ones can be made.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// heal makes the line right again. Connections that have lost bytes are of no use any more.
func (l *line) heal() {
	i := l.ill.Swap(&illness{})
	if i.noRequests || i.noAnswers {
		l.cut()
	}
}

func (l *line) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.cut()
	l.work.Wait()
}
