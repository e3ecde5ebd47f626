package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// dialTimeout is how long a socket file may take to show that somebody listens on it.
const dialTimeout = time.Second

// listen opens a listener on "host:port" or "unix:///path". A socket file that nobody listens on any more is removed.
func listen(ctx context.Context, name, addr string) (net.Listener, error) {
	network, where := "tcp", addr
	if path, isUnix := strings.CutPrefix(addr, "unix://"); isUnix {
		network, where = "unix", path
		if err := removeStaleSocket(ctx, path); err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, addr, err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, where)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", name, addr, err)
	}
	return listener, nil
}

func removeStaleSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("there is a file of that name that is no socket")
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(errors.New("another process listens there"), conn.Close())
	}
	return os.Remove(path)
}
