package admission

import (
	"encoding/base64"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proxy/wireerror"
)

// Write writes to the connection.
func (c *grpcConn) Write(p []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	mustClose := err == nil && c.parseWritten(p[:n])
	last, hasPending := c.lastStream, len(c.pendingFrames) > 0
	c.mu.Unlock()
	if hasPending {
		c.writePending()
	}
	if mustClose {
		c.closeWithGoAway(last)
	}
	return n, err
}

// parseWritten follows what the server writes, and reports whether GOAWAY must be sent now.
func (c *grpcConn) parseWritten(p []byte) bool {
	c.out.parse(p, func() {
		switch f := &c.out; {
		case f.kind == frameReset, f.kind == frameHeaders && f.flags&flagEndStream != 0:
			c.endStream(f.stream)
		case f.kind == frameData:
			c.releaseRequest(f.stream)
		}
	}, func(piece []byte) {
		if c.out.kind == frameData {
			c.dataWritten(c.out.stream, piece)
		}
	}, func() bool { return false })
	return c.isGoingAway && len(c.streams) == 0 && c.out.isBetween()
}

// refuseStream answers a call whose message does not fit into memory, and hides the message from the server.
func (c *grpcConn) refuseStream(id uint32) {
	c.refusedStream = id
	headers := encodeFrame(frameHeaders, flagEndStream|flagEndHeaders, id, memoryErrorHeaders())
	c.pendingFrames = append(append(c.pendingFrames, headers...), encodeReset(id, noError)...)
	go func() {
		c.writeMu.Lock()
		defer c.writeMu.Unlock()
		c.writePending()
	}()
}

// memoryErrorHeaders encodes the headers of a response that fails with errRequestMemory.
var memoryErrorHeaders = sync.OnceValue(func() []byte {
	failure := wireerror.Status(errRequestMemory())
	details, _ := proto.Marshal(failure.Proto()) // marshaling it cannot fail
	return slices.Concat(encodeField(":status", "200"), encodeField("content-type", "application/grpc"),
		encodeField("grpc-status", strconv.Itoa(int(failure.Code()))), encodeField("grpc-message", failure.Message()),
		encodeField("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details)))
})

// writePending writes pendingFrames if the server is between frames; otherwise Write calls it again. The caller holds
// writeMu.
func (c *grpcConn) writePending() {
	c.mu.Lock()
	var frames []byte
	if c.out.isBetween() {
		frames, c.pendingFrames = c.pendingFrames, nil
	}
	c.mu.Unlock()
	if len(frames) > 0 {
		_, _ = c.Conn.Write(frames) // if it fails, the client is gone
	}
}

// goAway closes the connection as soon as no call whose message has arrived is in flight. GOAWAY names the calls that
// were not processed.
func (c *grpcConn) goAway() {
	c.mu.Lock()
	c.isGoingAway = true
	isBusy, last := len(c.streams) > c.reading, c.lastStream
	for id := range c.streams { // their messages have not arrived
		last = min(last, id-1)
	}
	c.mu.Unlock()
	if isBusy {
		return // a call has arrived; its end closes the connection
	}
	if !c.writeMu.TryLock() {
		_ = c.Conn.Conn.Close() // the client does not read
		return
	}
	defer c.writeMu.Unlock()
	c.mu.Lock()
	isBetween := c.out.isBetween()
	c.mu.Unlock()
	if isBetween {
		c.closeWithGoAway(last)
	} else {
		_ = c.Conn.Conn.Close()
	}
}

// closeWithGoAway sends GOAWAY with the last processed stream, and closes. The caller holds writeMu.
func (c *grpcConn) closeWithGoAway(last uint32) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Conn.Conn.Write(encodeGoAway(last)) // without it, the client sees only the close
	_ = c.Conn.Conn.Close()
}
