// Package syncbuf has a buffer that a test reads while others write to it: the log of a sidecar, or the output of a
// process.
package syncbuf

import (
	"bytes"
	"sync"
)

// Buffer keeps all that is written to it. The zero value is empty and ready to use. It is safe for concurrent use, but
// must not be copied.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the buffer. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
