package sidecartest

import (
	"bufio"
	"context"
	"net/http"
	"strings"
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

// AwaitEvent opens the page of an entity, and reads what the console streams to it until an event contains a text.
func (c *Console) AwaitEvent(t testing.TB, entity, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Addr+"/ui/live?entity="+entity, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	events := bufio.NewReader(answer.Body)
	for {
		event, err := events.ReadString('\n')
		if err != nil {
			t.Fatalf("no event contains %s: %v", text, err)
		}
		if strings.Contains(event, text) {
			return
		}
	}
}
