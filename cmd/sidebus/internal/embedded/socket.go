//go:build unix

package embedded

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	socketName = "redis.sock"
	// maxSocketPath is the shortest limit of the systems we run on for the path of a unix socket, less its end mark.
	maxSocketPath = 103
	talkTimeout   = time.Second
)

// socket is the server's socket under a path that is short enough to connect to. The server binds it by its bare
// name, so only clients know the limit: where the data directory's path is too long, they go through a symbolic link.
type socket struct {
	path string
	temp string // directory of the link, "" when none was needed
}

func newSocket(dir string) (socket, error) {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return socket{path: path}, nil
	}
	base := os.TempDir()
	if len(base) > maxSocketPath/2 {
		base = "/tmp"
	}
	temp, err := os.MkdirTemp(base, "sidebus-")
	if err != nil {
		return socket{}, fmt.Errorf("a short path to the socket of %s: %w", dir, err)
	}
	link := filepath.Join(temp, "data")
	if err := os.Symlink(dir, link); err != nil {
		_ = os.RemoveAll(temp)
		return socket{}, fmt.Errorf("a short path to the socket of %s: %w", dir, err)
	}
	return socket{path: filepath.Join(link, socketName), temp: temp}, nil
}

func (s socket) url() string { return (&url.URL{Scheme: "unix", Path: s.path}).String() }

func (s socket) remove() {
	if s.temp != "" {
		_ = os.RemoveAll(s.temp)
	}
}

// answers reports whether a server speaks on the socket, be it to say that it is still loading.
func answers(path string) bool {
	reply := talk(path, "PING\r\n")
	return strings.HasPrefix(reply, "+PONG") || strings.HasPrefix(reply, "-LOADING")
}

// shutDown asks a server to end. NOSAVE concerns snapshots only: the append-only file is written and synced.
func shutDown(path string) { talk(path, "SHUTDOWN NOSAVE\r\n") }

// talk sends one inline command and returns the first bytes of the answer, "" when there is none.
func talk(path, command string) string {
	conn, err := net.DialTimeout("unix", path, talkTimeout)
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // nothing was written that could be lost
	if err := conn.SetDeadline(time.Now().Add(talkTimeout)); err != nil {
		return ""
	}
	if _, err := io.WriteString(conn, command); err != nil {
		return ""
	}
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	if err != nil {
		return ""
	}
	return string(reply[:n])
}
