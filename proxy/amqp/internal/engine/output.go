package engine

import (
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// send adds a frame to the output, under the mutex.
func (c *Conn) send(f frame.Frame) {
	if c.isClosing {
		return
	}
	before := len(c.out)
	c.out = frame.Append(c.out, f)
	c.appended += int64(len(c.out) - before)
	c.poke()
}

// poke wakes the writer.
func (c *Conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes the output until the connection ends. Nothing that was written so far, and nothing else, is certain to
// have left this process when it returns.
func (c *Conn) write() {
	defer c.end()
	var spare []byte
	for {
		if !c.awaitOutput() {
			c.Cut()
			return
		}
		c.mu.Lock()
		buffer, isLast := c.out, c.isClosing
		c.out = spare[:0]
		c.mu.Unlock()
		if len(buffer) > 0 {
			_ = c.net.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := c.net.Write(buffer); err != nil {
				c.Cut()
				return
			}
			c.mu.Lock()
			c.written += int64(len(buffer))
			c.flushed.fire()
			c.mu.Unlock()
		}
		if isLast {
			c.finish()
			return
		}
		if spare = buffer; cap(spare) > maxFrameSize {
			spare = nil
		}
	}
}

// finish lets the client read the last frame and close the connection, if it does so soon.
func (c *Conn) finish() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.Cut()
		return
	}
	time.AfterFunc(linger, c.Cut)
}

// awaitOutput waits until there is something to write, which is an empty frame after some silence. It reports false
// when the connection has ended.
func (c *Conn) awaitOutput() bool {
	c.mu.Lock()
	heartbeat := c.heartbeat
	c.mu.Unlock()
	var silence <-chan time.Time
	if heartbeat > 0 {
		timer := time.NewTimer(heartbeat)
		defer timer.Stop()
		silence = timer.C
	}
	select {
	case <-c.wake:
	case <-silence:
		c.mu.Lock()
		c.send(frame.Frame{})
		c.mu.Unlock()
	case <-c.ctx.Done():
		return false
	}
	return true
}
