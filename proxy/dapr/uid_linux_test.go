package dapr

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Another user may connect, which needs the right to write.
func TestAnotherUserConnects(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else") // the mode is checked above
	}
	b := onSockets(t)
	b.begin()
	b.ok(os.Chmod(filepath.Dir(b.config.Socket), 0o755)) //nolint:gosec // as Dapr's folder is
	if err := connectAs(65532, b.config.Socket); err != nil {
		t.Error(err)
	}
}

// connectAs connects to a socket with the rights of a user, in a thread that ends with it.
func connectAs(user int, path string) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and not back, so that it ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user)); errno != 0 {
			failed <- errno
			return
		}
		socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			failed <- err
			return
		}
		err = syscall.Connect(socket, &syscall.SockaddrUnix{Name: path})
		_ = syscall.Close(socket)
		failed <- err
	}()
	return <-failed
}
