//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrNoServer says that neither redis-server nor valkey-server is on PATH.
var ErrNoServer = errors.New("neither redis-server nor valkey-server is on PATH")

// ErrInUse says that another sidecar runs on the data directory.
var ErrInUse = errors.New("the data directory is in use by another sidecar")

// programs are tried in this order; both read and write the same files.
var programs = []string{"redis-server", "valkey-server"}

const (
	stopPatience  = 10 * time.Second // for a server to write its file and go
	firstBackOff  = 100 * time.Millisecond
	mostBackOff   = 5 * time.Second
	steadyAfter   = 30 * time.Second // a server that lived this long resets the back-off
	slowStartNote = 5 * time.Second
)

// Server is a running private server and what keeps it running. Stop must be called once.
type Server struct {
	program string
	dir     string
	socket  socket
	locks   *locks
	logger  *slog.Logger
	more    []string // arguments, after the usual ones

	child    atomic.Pointer[os.Process]
	stopping chan struct{}
	done     chan struct{}
}

// Start starts the private server in dir, which is made when absent and closed to other users, and blocks until it
// answers or has failed, or ctx ends. It fails with ErrNoServer, ErrInUse, or with what the server itself said last.
// More are further arguments of its command line.
func Start(ctx context.Context, dir string, logger *slog.Logger, more ...string) (*Server, error) {
	program, err := findProgram()
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := closeDir(dir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	socket, err := newSocket(dir)
	if err != nil {
		return nil, err
	}
	locks, err := lockDir(ctx, dir, socket.path, logger)
	if err != nil {
		socket.remove()
		return nil, err
	}
	s := &Server{
		program: program, dir: dir, socket: socket, locks: locks, logger: logger,
		stopping: make(chan struct{}), done: make(chan struct{}), more: more,
	}
	child, err := s.spawn()
	if err == nil {
		err = s.awaitAnswer(ctx, child)
	}
	if err != nil {
		if child != nil {
			child.end()
		}
		s.release()
		return nil, err
	}
	go s.keep(child)
	return s, nil
}

func findProgram() (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoServer
}

// URL is the address of the server in the form the --store flag takes.
func (s *Server) URL() string { return s.socket.url() }

// Program is the path of the server program that runs.
func (s *Server) Program() string { return s.program }

// Dir is the absolute path of the data directory.
func (s *Server) Dir() string { return s.dir }

// Stop ends the server in order, so that everything is on disk, and blocks until it is gone.
func (s *Server) Stop() {
	close(s.stopping)
	<-s.done
	s.release()
}

// Abandon signals the server to stop and does not wait: for a process that is about to exit at once.
func (s *Server) Abandon() {
	if child := s.child.Load(); child != nil {
		_ = child.Signal(syscall.SIGTERM)
	}
}

func (s *Server) release() {
	s.locks.release()
	s.socket.remove()
}

// awaitAnswer blocks until the server speaks. A server that still loads its file has spoken: clients wait for it.
func (s *Server) awaitAnswer(ctx context.Context, child *child) error {
	note := time.NewTimer(slowStartNote)
	defer note.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		if answers(s.socket.path) {
			return nil
		}
		select {
		case <-look.C:
		case <-note.C:
			s.logger.Warn("the private server takes long to answer", "program", s.program, "data_dir", s.dir)
		case <-child.gone:
			return fmt.Errorf("%s ended at once (%s); it said last:\n%s", s.program, child.state(), child.output.last())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keep starts the server again whenever it exits, until Stop.
func (s *Server) keep(running *child) {
	defer close(s.done)
	backOff := firstBackOff
	for {
		select {
		case <-s.stopping:
			running.end()
			return
		case <-running.gone:
		}
		if time.Since(running.started) > steadyAfter {
			backOff = firstBackOff
		}
		s.logger.Error(
			"the private server ended unexpectedly; it is started again", "program", s.program, "state",
			running.state(), "after", backOff.String(), "last_output", running.output.last(),
		)
		next, err := s.respawn(&backOff)
		if err != nil {
			return
		}
		running = next
	}
}

// respawn tries with growing pauses until a server runs; it fails only when Stop was called.
func (s *Server) respawn(backOff *time.Duration) (*child, error) {
	for {
		pause := time.NewTimer(*backOff)
		select {
		case <-s.stopping:
			pause.Stop()
			return nil, errors.New("stopping")
		case <-pause.C:
		}
		*backOff = min(2**backOff, mostBackOff)
		next, err := s.spawn()
		if err == nil {
			return next, nil
		}
		s.logger.Error(
			"the private server does not start", "program", s.program, "error", err.Error(), "after", backOff.String(),
		)
	}
}
