package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// FreePort returns a port that no server uses. It is none of those that the kernel assigns to connections, which could
// take it before the server of the test starts, and none that this test process or another one got, as long as that
// runs.
func FreePort(t testing.TB) string {
	t.Helper()
	const lowest, above, tries = 10000, 30000, 100
	for range tries {
		port := strconv.Itoa(lowest + rand.IntN(above-lowest))
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		isOurs := claim(t, port)
		_ = listener.Close()
		if isOurs {
			return port
		}
	}
	t.Fatalf("none of %d ports is free", tries)
	return ""
}

// claim reports whether a port is this caller's until its process ends. Each port has a file, and who has locked it has
// the port: until its server listens, others would find it free.
func claim(t testing.TB, port string) bool {
	t.Helper()
	folder := filepath.Join(os.TempDir(), "sidebus-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(filepath.Join(folder, port), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = syscall.Close(fd)
		return false
	}
	return true // and fd stays open
}
