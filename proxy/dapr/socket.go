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
	// privateFolder is next to the sockets. The Dapr runtime ignores folders, so it does not look for components there.
	privateFolder = ".sidebus"
	// hiddenNameLength is the length of the name of a socket before it is published.
	hiddenNameLength = 8
	// socketMode lets the Dapr runtime connect as another user, which needs write permission.
	socketMode = 0o666
)

// socket is a listener whose file appears when it is published.
type socket struct {
	net.Listener

	path, hidden string

	mu          sync.Mutex
	published   fs.FileInfo // of the file; nil until published
	isWithdrawn bool
}

// listen opens a socket under a hidden name. It removes a stale file of the final name now, because the Dapr runtime
// would wait for it.
func listen(ctx context.Context, path string) (*socket, error) {
	folder := filepath.Join(filepath.Dir(path), privateFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the sockets in it are for others
		return nil, fmt.Errorf("create the folder of %s: %w", path, err)
	}
	if err := unixsocket.RemoveStale(ctx, path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &socket{path: path, hidden: filepath.Join(folder, semantics.NewRandomUUID().String()[:hiddenNameLength])}
	if n := len(s.hidden); n > maxSocketPath {
		return nil, fmt.Errorf(
			"the folder of %s is too long: with a hidden socket the path is %d bytes, at most %d are allowed; use a shorter folder",
			path, n, maxSocketPath,
		)
	}
	listener, err := unixsocket.Listen(ctx, s.hidden, socketMode)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false) // withdraw removes the file
	s.Listener = listener
	return s, nil
}

// publish renames the file to its final name, unless the socket was withdrawn. From then on clients can connect.
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

// withdraw removes the file unless another process has replaced it. Open connections stay; no new ones are accepted.
func (s *socket) withdraw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isWithdrawn = true
	if s.published == nil {
		return unixsocket.Remove(s.hidden)
	}
	current, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !os.SameFile(current, s.published) {
		return nil
	}
	return unixsocket.Remove(s.path)
}

// Close withdraws the file and closes the listener.
func (s *socket) Close() error { return errors.Join(s.withdraw(), s.Listener.Close()) }
