package semantics

import (
	"context"
	"time"
)

// Memory is the wire's side of an answer: it bounds what messages take that are on their way to clients.
type Memory interface {
	// Take takes memory for messages of so many bytes; with 0 bytes it only checks that some is left. Take fails with
	// THROTTLED if no memory is left, unless must is true, which is for the answer to what cannot be undone.
	Take(bytes int64, must bool) error
	// Give releases the memory of messages of so many bytes that were written to the wire, or that no client gets.
	Give(bytes int64)
}

type memoryKey struct{}

// WithMemory puts m into a context for the calls made with it. Calls without Memory are not bounded.
func WithMemory(ctx context.Context, m Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

// MemoryOf returns the Memory for answers of calls with ctx.
func MemoryOf(ctx context.Context) Memory {
	if m, ok := ctx.Value(memoryKey{}).(Memory); ok {
		return m
	}
	return unbounded{}
}

type unbounded struct{}

func (unbounded) Take(int64, bool) error { return nil }
func (unbounded) Give(int64)             {}

// NoMemory is how a call fails for whose answer there is no memory. Nothing was changed.
func NoMemory() *Error {
	e := Errorf(
		Throttled,
		"answers that clients have not read yet take all memory there is for them; read them, and ask again later",
	)
	e.RetryAfter = time.Second
	return e
}
