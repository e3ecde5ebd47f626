package unixsocket

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Between the moment that a socket has a file and the one that the file has its mode, others cannot connect. The test
// changes the umask of the process, so nothing runs beside it.
func TestAUTH_4_NoOneElseConnectsBeforeTheSocketHasItsMode(t *testing.T) { //nolint:paralleltest // the umask
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "s")
	listener, err := bind(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want(t, path, 0o600)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o600, 0o660, 0o666} {
		listener, err := Listen(t.Context(), path, mode)
		if err != nil {
			t.Fatal(err)
		}
		want(t, path, mode)
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func want(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != mode {
		t.Errorf("got mode %o, want %o", got, mode)
	}
}
