//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// locks are two advisory file locks in the data directory. The kernel drops each when the last process that has the
// file open is gone, so neither can be left behind.
type locks struct {
	sidecar *os.File // held by this process alone
	server  *os.File // inherited by the server
}

const lockRetry = 20 * time.Millisecond

// lockDir takes both locks. A held sidecar lock means a living sidecar: ErrInUse. A held server lock without a
// sidecar means a left-over server, which is ended first.
func lockDir(ctx context.Context, dir, socketPath string, logger *slog.Logger) (*locks, error) {
	sidecar, held, err := lockSidecar(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	if held {
		return nil, fmt.Errorf(
			"%w (process %s): %s; stop that, or choose another with --data-dir", ErrInUse,
			holder(filepath.Join(dir, lockName)), dir,
		)
	}
	l := &locks{sidecar: sidecar}
	if err := writePID(sidecar); err != nil {
		l.release()
		return nil, err
	}
	l.server, err = lockServer(ctx, filepath.Join(dir, "server.lock"), socketPath, logger)
	if err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// lockSidecar tries for a moment: a process that this one is just starting has its files for an instant too.
func lockSidecar(ctx context.Context, path string) (file *os.File, held bool, err error) {
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for range 10 {
		file, held, err = tryLock(path)
		if err != nil || !held {
			return file, held, err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
	return nil, true, nil
}

func lockServer(ctx context.Context, path, socketPath string, logger *slog.Logger) (*os.File, error) {
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for first := true; ; first = false {
		file, held, err := tryLock(path)
		if err != nil || !held {
			return file, err
		}
		if first {
			logger.Warn(
				"a private server of an earlier sidecar is still there; it is stopped first", "socket", socketPath,
			)
		}
		shutDown(socketPath)
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-patience.C:
			return nil, fmt.Errorf(
				"a private server of an earlier sidecar holds %s and did not stop in %s; end it and try again", path,
				stopPatience,
			)
		}
	}
}

// tryLock opens and locks a file without waiting. held means that another process has the lock.
func tryLock(path string) (file *os.File, held bool, err error) {
	file, err = os.OpenFile(
		path, os.O_RDWR|os.O_CREATE, 0o600,
	) //nolint:gosec // a fixed name in the user's data directory
	if err != nil {
		return nil, false, fmt.Errorf("data directory: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // descriptors are small
	if err == nil {
		return file, false, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("locking %s: %w", path, err)
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// holder reads who has a lock, for the message only.
func holder(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // a fixed name in the user's data directory
	if err != nil || len(text) == 0 {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func (l *locks) release() {
	for _, file := range []*os.File{l.server, l.sidecar} {
		if file != nil {
			_ = file.Close()
		}
	}
}
