package admission

import (
	"encoding/base64"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proxy/wireerror"
)

// grpcConn passes bytes between a client and the server, and lets callsInFlight follow them. Where that requires it, it
// hides frames from the server and writes frames of its own.
type grpcConn struct {
	*Conn

	number   uint64 // of all connections that were accepted, this one has no other
	calls    *callsInFlight
	injected []byte     // frames for the server, read before the connection; of the one goroutine that reads
	writing  sync.Mutex // held during writes
}

// Read reads from the connection.
func (c *grpcConn) Read(p []byte) (int, error) {
	n, err := copy(p, c.injected), error(nil)
	c.injected = c.injected[n:]
	if n == 0 {
		n, err = c.Conn.Conn.Read(p)
	}
	n, next, isOver, hasRefused := c.calls.received(p[:n])
	if isOver {
		return 0, io.EOF
	}
	if len(next) > 0 {
		c.injected = append(next, c.injected...)
	}
	if hasRefused {
		go func() {
			c.writing.Lock()
			defer c.writing.Unlock()
			c.writePending()
		}()
	}
	return n, err
}

// Write writes to the connection.
func (c *grpcConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Conn.Write(p)
	if err != nil {
		return n, err
	}
	last, mustClose, hasPending := c.calls.written(p[:n])
	if hasPending {
		c.writePending()
	}
	if mustClose {
		c.closeWithGoAway(last)
	}
	return n, nil
}

// writePending writes the frames that are pending if the server is between frames; otherwise Write calls it again. The
// caller holds writing.
func (c *grpcConn) writePending() {
	if frames := c.calls.takePending(); len(frames) > 0 {
		_, _ = c.Conn.Write(frames) // if it fails, the client is gone
	}
}

// memoryErrorResponse encodes the response of a call that fails with RequestMemoryUsed, and the end of its stream.
func memoryErrorResponse(id uint32) []byte {
	headers := encodeFrame(frameHeaders, flagEndStream|flagEndHeaders, id, memoryErrorHeaders())
	return append(headers, encodeReset(id, noError)...)
}

var memoryErrorHeaders = sync.OnceValue(func() []byte {
	failure := wireerror.Status(RequestMemoryUsed())
	details, _ := proto.Marshal(failure.Proto()) // marshaling it cannot fail
	return slices.Concat(encodeField(":status", "200"), encodeField("content-type", "application/grpc"),
		encodeField("grpc-status", strconv.Itoa(int(failure.Code()))), encodeField("grpc-message", failure.Message()),
		encodeField("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details)))
})

// goAway closes the connection as soon as no call whose message has arrived is in flight. GOAWAY names the calls that
// were not processed.
func (c *grpcConn) goAway() {
	last, isBusy := c.calls.goAway()
	if isBusy {
		return // a call has arrived; its end closes the connection
	}
	if !c.writing.TryLock() {
		_ = c.Conn.Conn.Close() // the client does not read
		return
	}
	defer c.writing.Unlock()
	if c.calls.isBetweenFrames() {
		c.closeWithGoAway(last)
	} else {
		_ = c.Conn.Conn.Close()
	}
}

// closeWithGoAway sends GOAWAY with the last processed stream, and closes. The caller holds writing.
func (c *grpcConn) closeWithGoAway(last uint32) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Conn.Conn.Write(encodeGoAway(last)) // without it, the client sees only the close
	_ = c.Conn.Conn.Close()
}

// Close closes the connection and frees all memory of its calls.
func (c *grpcConn) Close() error {
	c.calls.end()
	return c.Conn.Close()
}

// closeSilent closes the connection unless a frame has arrived. The server notices and forgets it.
func (c *grpcConn) closeSilent() {
	if !c.calls.hasFrames.Load() {
		_ = c.Conn.Conn.Close()
	}
}
