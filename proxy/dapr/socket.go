package dapr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sidebus/sidebus/proxy/internal/unixsocket"
	"github.com/sidebus/sidebus/semantics"
)

const (
	// privateFolder is beside the sockets. Dapr's runtime passes over folders, so what is in it is not taken for a
	// component.
	privateFolder = ".sidebus"
	// hiddenName is how long the name of a socket is before it is published.
	hiddenNameLength = 8
	// socketMode lets Dapr's runtime connect, which runs as another user: to connect one must be allowed to write.
	socketMode = 0o666
)

// socket is a listener whose file appears only when it is published.
type socket struct {
	net.Listener

	path, hidden string

	mu          sync.Mutex
	published   fs.FileInfo // of the file, nil until it has appeared
	isWithdrawn bool
}

// listen opens a socket under a hidden name. A file of the final name that nobody listens on any more goes away now:
// Dapr's runtime would wait for it.
func listen(ctx context.Context, path string) (*socket, error) {
	folder := filepath.Join(filepath.Dir(path), privateFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the sockets in it are for others
		return nil, fmt.Errorf("cannot make the folder of %s: %w", path, err)
	}
	if err := unixsocket.RemoveStale(ctx, path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &socket{path: path, hidden: filepath.Join(folder, semantics.NewRandomUUID().String()[:hiddenNameLength])}
	if n := len(s.hidden); n > maxSocketPath {
		return nil, fmt.Errorf(
			"the folder of %s has too long a path: with what is needed beside the socket it is %d bytes, a socket may have %d",
			path, n, maxSocketPath,
		)
	}
	listener, err := unixsocket.Listen(ctx, s.hidden, socketMode)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false) // withdraw removes the file
	s.Listener = listener
	return s, nil
}

// publish gives the file its name, unless it was withdrawn already. Whoever sees it can connect.
func (s *socket) publish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isWithdrawn {
		return nil
	}
	info, err := os.Lstat(s.hidden)
	if err != nil {
		return err
	}
	if err := os.Rename(s.hidden, s.path); err != nil {
		return err
	}
	s.published = info
	return nil
}

// withdraw removes the file, unless another process has put its own there meanwhile. Connections go on, and no new ones
// come.
func (s *socket) withdraw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isWithdrawn = true
	if s.published == nil {
		return ignoreMissing(os.Remove(s.hidden))
	}
	present, err := os.Lstat(s.path)
	if err != nil {
		return ignoreMissing(err)
	}
	if !os.SameFile(present, s.published) {
		return nil
	}
	return ignoreMissing(os.Remove(s.path))
}

// Close withdraws the file and ends the listener.
func (s *socket) Close() error { return errors.Join(s.withdraw(), s.Listener.Close()) }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
