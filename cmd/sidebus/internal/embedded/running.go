//go:build unix

package embedded

import (
	"fmt"
	"path/filepath"
)

// Running returns the URL of the server that a sidecar runs with its data in dir, and what to call when the URL is not
// used any more. It fails when none answers, and blocks for a second at most.
func Running(dir string) (url string, release func(), err error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("data directory: %w", err)
	}
	socket, err := newSocket(absolute)
	if err != nil {
		return "", nil, err
	}
	if !answers(socket.path) {
		socket.remove()
		return "", nil, fmt.Errorf("no sidecar runs with its data in %s; start one, or name another --store or --data-dir", dir)
	}
	return socket.url(), socket.remove, nil
}
