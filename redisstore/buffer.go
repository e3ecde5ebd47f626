package redisstore

import "sync"

// buffers has memory in which messages are encoded until Redis has them, as *[]byte.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// mostBuffer bounds a buffer that is used again, so that a few large messages do not stay in memory.
const mostBuffer = 1 << 20

// takeBuffer returns an empty buffer for returnBuffer to take back.
func takeBuffer() *[]byte {
	b := buffers.Get().(*[]byte) //nolint:forcetypeassert // it has nothing else
	*b = (*b)[:0]
	return b
}

// returnBuffer takes back a buffer that nothing refers to any more.
func returnBuffer(b *[]byte) {
	if cap(*b) <= mostBuffer {
		buffers.Put(b)
	}
}
