package sidecartest

import (
	"context"
	"net/http"
	"testing"
)

// Console is one "sidebus console" process.
type Console struct {
	Addr string // host:port; empty if the process ended before it listened

	process
}

// LaunchConsole starts a console on a free port with further flags, and waits until it listens or has ended. The test
// kills it at its end.
func LaunchConsole(t testing.TB, args ...string) *Console {
	t.Helper()
	c := &Console{process: launch(t, Binary(t), append([]string{"console", "--addr", "127.0.0.1:0"}, args...)...)}
	Eventually(t, "the console listens or ends", func() bool {
		at, listens := c.log.addresses("the console is listening")
		c.Addr = at.Addr
		return listens || c.HasExited()
	})
	return c
}

// Get gets a page.
func (c *Console) Get(ctx context.Context, path string) Answer {
	return call(ctx, http.MethodGet, "http://"+c.Addr+path, "")
}
