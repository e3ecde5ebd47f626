// Package unixsocket opens unix sockets and removes their files.
package unixsocket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// dialTimeout bounds the attempt to connect to an existing socket.
const dialTimeout = time.Second

// RemoveStale removes a socket file on which no process listens. It does nothing if the file is missing. It fails if a
// process listens, or the file is not a socket. It blocks for dialTimeout at most.
func RemoveStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("the file exists and is not a socket")
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(errors.New("another process listens on the socket"), conn.Close())
	}
	return Remove(path) // another process that starts may have removed it
}

// Listen opens a socket whose file has the given mode regardless of the umask. The file must not exist, see
// RemoveStale.
func Listen(ctx context.Context, path string, mode fs.FileMode) (*net.UnixListener, error) {
	listener, err := bind(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// bind opens a socket that only the owner of this process may connect to, where the system lets a socket have a mode
// before it has a file, as Linux does: no one else connects before the file gets the mode it is to have.
func bind(ctx context.Context, path string) (*net.UnixListener, error) {
	private := func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}
	listener, err := (&net.ListenConfig{Control: private}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return listener.(*net.UnixListener), nil //nolint:forcetypeassert // of the network unix
}

// Remove removes a socket file. It does nothing if the file is missing.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
