package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port that no server uses. It is none of those that the kernel assigns to connections, which could take
// it before the server of the test starts.
func FreePort(t testing.TB) string {
	t.Helper()
	const lowest, above, tries = 10000, 30000, 100
	for range tries {
		port := strconv.Itoa(lowest + rand.IntN(above-lowest))
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatalf("none of %d ports is free", tries)
	return ""
}
