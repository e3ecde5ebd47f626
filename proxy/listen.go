package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/sidebus/sidebus/proxy/internal/unixsocket"
)

// listen opens a listener on "host:port" or "unix:///path". A stale socket file is removed; the new one gets mode. name
// is the flag that errors name.
func listen(ctx context.Context, name, addr string, mode fs.FileMode) (listener net.Listener, err error) {
	if path, isUnix := strings.CutPrefix(addr, "unix://"); isUnix {
		if err := unixsocket.RemoveStale(ctx, path); err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, addr, err)
		}
		listener, err = unixsocket.Listen(ctx, path, mode)
	} else {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf(
			"%s: cannot listen on %s: the address is in use, perhaps by another sidecar; stop it, or choose another address: %w",
			name, addr, err,
		)
	case err != nil:
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", name, addr, err)
	default:
		return listener, nil
	}
}
