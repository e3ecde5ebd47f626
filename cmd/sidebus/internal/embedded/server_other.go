//go:build !unix

package embedded

import (
	"context"
	"errors"
	"log/slog"
)

// ErrNoServer says that no server program can be run here.
var ErrNoServer = errors.New("a private server needs a Unix system")

// ErrInUse says that another sidecar runs on the data directory.
var ErrInUse = errors.New("the data directory is in use by another sidecar")

// Server stands in for the private server where none can be had.
type Server struct{}

// Start always fails with ErrNoServer.
func Start(context.Context, string, *slog.Logger) (*Server, error) { return nil, ErrNoServer }

// URL is empty.
func (s *Server) URL() string { return "" }

// Program is empty.
func (s *Server) Program() string { return "" }

// Dir is empty.
func (s *Server) Dir() string { return "" }

// Stop does nothing.
func (s *Server) Stop() {}

// Abandon does nothing.
func (s *Server) Abandon() {}

// Running always fails with ErrNoServer.
func Running(string) (url string, release func(), err error) { return "", nil, ErrNoServer }
