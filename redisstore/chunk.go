package redisstore

import (
	"fmt"
	"strconv"
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
	load   load
}

// load is what send.lua gets of messages that it admits or refuses together.
type load struct {
	messages                    int
	bytes, largest, largestCall int64
	largestPayload              int
}

func (l *load) add(call *sendCall) {
	bytes := int64(0)
	for i, m := range call.messages {
		size := m.Size()
		bytes += size
		l.largest, l.largestPayload = max(l.largest, size), max(l.largestPayload, len(call.payloads[i]))
	}
	if len(call.messages) > 1 {
		l.largestCall = max(l.largestCall, bytes)
	}
	l.messages, l.bytes = l.messages+len(call.messages), l.bytes+bytes
}

// describe sets the arguments for it.
func (l *load) describe(args []any) {
	args[0], args[1], args[2], args[3], args[4] = l.messages, l.bytes, l.largest, l.largestCall, l.largestPayload
}

// chunkArgs returns the arguments of send.lua for calls in groups of one caller each. They are valid as long as the
// buffer is. Messages of several callers share no chunk: those that are sent one by one are mostly received so, and
// taking a chunk apart costs more than entries of their own.
func chunkArgs(now string, groups []sendCalls, buffer *[]byte) []any {
	c := chunker{args: append(make([]any, 0, 16), now, "chunks", nil, nil, nil, nil, nil), buffer: buffer}
	for _, calls := range groups {
		for _, call := range calls {
			c.add(call)
		}
		c.finish()
	}
	c.load.describe(c.args[2:])
	return c.args
}

func (c *chunker) add(call *sendCall) {
	c.load.add(call)
	for i, m := range call.messages {
		payload := call.payloads[i]
		if c.next.isFull(len(payload)) {
			c.finish()
		}
		c.next.add(m.Size(), payload)
	}
}

// finish ends the entry that messages were added to, if any.
func (c *chunker) finish() {
	if len(c.next.payloads) > 0 {
		c.args = append(c.args, c.next.head(), c.next.payload(c.buffer))
	}
	c.next = chunk{}
}
