package redistest

import (
	"bufio"
	"crypto/sha1" //nolint:gosec // the name by which Redis knows a script
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/lua"
)

// SlowClock is a way to a Redis on which its clock can be set back, for sidecars in the test and in processes of their
// own. Each script that takes this way is told by how much the clock is behind, and takes that from the server's time
// itself: so all sidecars have one clock, which goes back when it is set, and at no other time. Times to live of keys,
// which Redis looks after without a script, stay right.
type SlowClock struct {
	// URL is that of the Redis, by this way.
	URL string

	listener net.Listener
	server   string          // its socket
	scripts  map[string]bool // those that look at the clock, by their hash
	behind   atomic.Int64    // ms

	mu    sync.Mutex
	conns []net.Conn // all, and nil when no more are taken
	ended bool
	all   sync.WaitGroup
}

// OpenSlowClock opens such a way to the Redis of a URL with a unix socket. It ends with the test.
func OpenSlowClock(t testing.TB, url string) *SlowClock {
	t.Helper()
	options := ClientOptions(t, url)
	folder, err := os.MkdirTemp("", "sidebus-clock-") //nolint:usetesting // names of tests are too long for a socket's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket := filepath.Join(folder, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := lua.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	c := &SlowClock{URL: "unix://" + socket, listener: listener, server: options.Addr, scripts: map[string]bool{}}
	for _, s := range scripts {
		if len(s.Args) > 0 && s.Args[0].Name == "now" {
			sum := sha1.Sum([]byte(s.Text)) //nolint:gosec // as above
			c.scripts[hex.EncodeToString(sum[:])] = true
		}
	}
	t.Cleanup(c.close)
	c.all.Go(c.serve)
	return c
}

// SetBack sets the clock back by so much, as compared with the server's own; zero sets it right. It goes for scripts
// that come from now on.
func (c *SlowClock) SetBack(by time.Duration) { c.behind.Store(by.Milliseconds()) }

func (c *SlowClock) close() {
	_ = c.listener.Close()
	c.mu.Lock()
	c.ended = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.all.Wait()
}

// keep reports whether a connection may be used. It is closed at the end at the latest.
func (c *SlowClock) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = conn.Close()
		return false
	}
	c.conns = append(c.conns, conn)
	return true
}

func (c *SlowClock) serve() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", c.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !c.keep(client) || !c.keep(server) {
			return
		}
		end := func() {
			_ = client.Close()
			_ = server.Close()
		}
		c.all.Go(func() {
			defer end()
			_ = c.carry(server, client)
		})
		c.all.Go(func() {
			defer end()
			_, _ = io.Copy(client, server)
		})
	}
}

// carry carries commands over, in the form in which clients send them: *3 $7 EVALSHA $40 ...
func (c *SlowClock) carry(server io.Writer, client io.Reader) error {
	in, out := bufio.NewReaderSize(client, 64<<10), bufio.NewWriterSize(server, 64<<10)
	for {
		n, err := header(in, '*')
		if err != nil {
			return err
		}
		if err := c.carryCommand(out, in, n); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (c *SlowClock) carryCommand(out *bufio.Writer, in *bufio.Reader, n int) error {
	_, _ = fmt.Fprintf(out, "*%d\r\n", n)
	clock := -1 // which argument is the instant
	isScript, isTimed := false, false
	for i := range n {
		size, err := header(in, '$')
		if err != nil {
			return err
		}
		if i > 0 && !isScript || i > max(2, clock) || i > 2 && i < clock { // it is not looked at
			_, _ = fmt.Fprintf(out, "$%d\r\n", size)
			if _, err := io.CopyN(out, in, int64(size)+2); err != nil {
				return err
			}
			continue
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return err
		}
		value := string(text[:size])
		switch {
		case i == 0:
			isScript = slices.Contains([]string{"evalsha", "evalsha_ro", "eval", "eval_ro"}, strings.ToLower(value))
		case i == 1:
			sum := sha1.Sum(text[:size]) //nolint:gosec // as above
			isTimed = c.scripts[value] || c.scripts[hex.EncodeToString(sum[:])]
		case i == 2 && isTimed:
			keys, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			clock = 3 + keys
		case i == clock && value == "0":
			value = strconv.FormatInt(-c.behind.Load(), 10)
		}
		_, _ = fmt.Fprintf(out, "$%d\r\n%s\r\n", len(value), value)
	}
	return nil
}

// header reads a line with a mark and a number.
func header(in *bufio.Reader, mark byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != mark {
		return 0, fmt.Errorf("%q is not a header of a command", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
