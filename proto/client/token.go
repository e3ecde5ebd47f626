package client

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenPause is how often the file with a token is read, so that a token that was replaced is soon used.
const tokenPause = 2 * time.Second

// bearer sends the token of a file with each call. It implements credentials.PerRPCCredentials.
type bearer struct {
	path string

	mu   sync.Mutex
	text string
	read time.Time
}

// newBearer reads the file for the first time.
func newBearer(path string) (*bearer, error) {
	b := &bearer{path: path}
	return b, b.load()
}

func (b *bearer) load() error {
	content, err := os.ReadFile(b.path)
	if err == nil {
		b.text = "Bearer " + strings.TrimSpace(string(content))
	}
	b.read = time.Now()
	return err
}

// GetRequestMetadata returns the token as the file has it now. A file that cannot be read leaves the token as it was.
func (b *bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.read) >= tokenPause {
		_ = b.load()
	}
	return map[string]string{"authorization": b.text}, nil
}

// RequireTransportSecurity reports that a token goes without TLS too: the sidecar may be on the same machine.
func (*bearer) RequireTransportSecurity() bool { return false }
