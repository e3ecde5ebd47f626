package grpcapi

import "sync"

// answers has the memory of encoded answers. Other than the pools of package mem it does not clear what it returns,
// which for a long answer takes longer than to encode it.
var answers buffers

// buffers implements mem.BufferPool.
type buffers struct{ unused sync.Pool }

// maxUnused is the capacity of the largest buffer that is kept for another answer: answers are seldom longer.
const maxUnused = 2 * mostTogetherBytes

// Get returns a buffer of n bytes, which may hold those of another answer.
func (b *buffers) Get(n int) *[]byte {
	buffer, ok := b.unused.Get().(*[]byte)
	if !ok || cap(*buffer) < n {
		buffer = new(make([]byte, n))
	}
	*buffer = (*buffer)[:n]
	return buffer
}

// Put takes a buffer back.
func (b *buffers) Put(buffer *[]byte) {
	if cap(*buffer) <= maxUnused {
		b.unused.Put(buffer)
	}
}
