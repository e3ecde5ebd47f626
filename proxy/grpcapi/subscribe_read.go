package grpcapi

import (
	"context"
	"errors"
	"io"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// read reads the client's requests until it closes its side, and ends the subscription then, or until the stream fails.
// Requests run concurrently. A change of credits runs at once, and a request that closes something runs after all
// requests before it.
func (c *subscriber) read(ctx context.Context, broken func(error)) error {
	for {
		request := &sidebusv1.SubscribeRequest{}
		err := recv(c.stream, request)
		if errors.Is(err, io.EOF) {
			c.finish()
			c.sub.Close(ctx)
			return nil
		}
		if err != nil {
			return err
		}
		if request.GetCloseSession() != nil {
			c.requests.Wait()
		}
		if !c.begin(ctx) {
			return nil
		}
		if request.GetCredits() != nil || request.GetCloseSession() != nil {
			c.carryOut(request)
			continue
		}
		select {
		case c.next <- request:
		default:
			go c.work(ctx, request, broken)
		}
	}
}

// work runs a request, and further ones while the stream lives, unless enough workers are idle.
func (c *subscriber) work(ctx context.Context, request *sidebusv1.SubscribeRequest, broken func(error)) {
	defer catch(broken)
	for {
		c.carryOut(request)
		if c.idle.Add(1) > maxIdleWorkers {
			c.idle.Add(-1)
			return
		}
		select {
		case request = <-c.next:
			c.idle.Add(-1)
		case <-ctx.Done():
			return
		}
	}
}

// begin notes a request in progress. It returns false if the stream is about to end, or ctx ends before a slot is free.
func (c *subscriber) begin(ctx context.Context) bool {
	select {
	case c.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOver {
		c.requests.Add(1)
	}
	return !c.isOver
}

func (c *subscriber) done() {
	<-c.places
	c.requests.Done()
}

// finish permits no further requests and waits for those in progress, including their answers.
func (c *subscriber) finish() {
	c.mu.Lock()
	c.isOver = true
	c.mu.Unlock()
	c.requests.Wait()
}
