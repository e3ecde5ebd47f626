// Package unixsocket looks after the files of unix sockets.
package unixsocket

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"time"
)

// dialTimeout is how long a socket file may take to show that somebody listens on it.
const dialTimeout = time.Second

// RemoveStale removes a socket that nobody listens on any more; one that is missing is fine. It fails when somebody
// listens, or the file is something else. It blocks for a second at most.
func RemoveStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return ignoreMissing(err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("there is a file of that name that is no socket")
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(errors.New("another process listens there"), conn.Close())
	}
	return ignoreMissing(os.Remove(path)) // another one that starts may have removed it
}

// Listen opens a socket whose file has the mode, whatever the umask is. The file must not exist; see RemoveStale.
func Listen(ctx context.Context, path string, mode fs.FileMode) (*net.UnixListener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener.(*net.UnixListener), nil //nolint:forcetypeassert // of the network unix
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
