package redisstore

import (
	"fmt"
	"strconv"
	"sync"
)

// Small messages that are sent together share an entry of the log, a chunk: docs/decisions/0035.

// Bounds of a chunk. A read of one message reads all of its chunk. For an entry of a little less than 32 KiB Redis
// allocates hardly more than that.
const (
	mostChunkMessages = 32
	mostChunkBytes    = 32<<10 - 640
)

// formatChunk is the first byte of the payloads of a chunk, in the place of the format of one message: see payload.go.
const formatChunk = 3

// formatShared stands in the place of the payloads of a chunk whose bodies are with the topic: docs/decisions/0037.
const formatShared = "\x04"

// chunk is an entry of the log that is to be written, with one message or several.
type chunk struct {
	payloads        [][]byte
	sizes           []byte // "<size>,<size>,..."
	sizesAndLengths []byte // "<size>:<length of the payload>,..."
	bytes           int64  // what they count for
	length          int
}

func (c *chunk) isFull(length int) bool {
	return len(c.payloads) == mostChunkMessages || len(c.payloads) > 0 && c.length+length > mostChunkBytes
}

func (c *chunk) add(size int64, payload []byte) {
	if len(c.payloads) > 0 {
		c.sizes, c.sizesAndLengths = append(c.sizes, ','), append(c.sizesAndLengths, ',')
	}
	c.sizes = strconv.AppendInt(c.sizes, size, 10)
	c.sizesAndLengths = append(strconv.AppendInt(c.sizesAndLengths, size, 10), ':')
	c.sizesAndLengths = strconv.AppendInt(c.sizesAndLengths, int64(len(payload)), 10)
	c.payloads, c.bytes, c.length = append(c.payloads, payload), c.bytes+size, c.length+len(payload)
}

// head returns what send.lua gets of the entry besides its payload.
func (c *chunk) head() any {
	if len(c.payloads) == 1 {
		return c.bytes
	}
	return fmt.Appendf(nil, "%d %d %s %s", len(c.payloads), c.bytes, c.sizes, c.sizesAndLengths)
}

// payload returns what the entry has as its payload. That of several messages is written to the buffer.
func (c *chunk) payload(buffer *[]byte) []byte {
	if len(c.payloads) == 1 {
		return c.payloads[0]
	}
	from := len(*buffer)
	*buffer = append(*buffer, formatChunk)
	for _, p := range c.payloads {
		*buffer = append(*buffer, p...)
	}
	return (*buffer)[from:]
}

// chunker makes the arguments of send.lua for calls whose messages have no options.
type chunker struct {
	args   []any
	buffer *[]byte
	next   chunk // the entry that messages are added to

	messages                    int
	bytes, largest, largestCall int64
	largestPayload              int
}

// chunkBuffers has what chunks are put together in, as *[]byte, until Redis has them.
var chunkBuffers = sync.Pool{New: func() any { return new([]byte) }}

// chunkArgs returns the arguments of send.lua for calls in groups of one caller each. They are valid as long as the
// buffer is. Messages of several callers share no chunk: those that are sent one by one are mostly received so, and
// taking a chunk apart costs more than entries of their own.
func chunkArgs(now string, groups []sendCalls, buffer *[]byte) []any {
	*buffer = (*buffer)[:0]
	c := chunker{args: append(make([]any, 0, 16), now, "chunks", nil, nil, nil, nil, nil), buffer: buffer}
	for _, calls := range groups {
		for _, call := range calls {
			c.add(call)
		}
		c.finish()
	}
	c.args[2], c.args[3], c.args[4] = c.messages, c.bytes, c.largest
	c.args[5], c.args[6] = c.largestCall, c.largestPayload
	return c.args
}

func (c *chunker) add(call *sendCall) {
	bytes := int64(0)
	for i, m := range call.messages {
		size, payload := m.Size(), call.payloads[i]
		if c.next.isFull(len(payload)) {
			c.finish()
		}
		c.next.add(size, payload)
		bytes += size
		c.largest, c.largestPayload = max(c.largest, size), max(c.largestPayload, len(payload))
	}
	if len(call.messages) > 1 {
		c.largestCall = max(c.largestCall, bytes)
	}
	c.messages, c.bytes = c.messages+len(call.messages), c.bytes+bytes
}

// finish ends the entry that messages were added to, if any.
func (c *chunker) finish() {
	if len(c.next.payloads) > 0 {
		c.args = append(c.args, c.next.head(), c.next.payload(c.buffer))
	}
	c.next = chunk{}
}
