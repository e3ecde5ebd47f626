package grpcapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

const (
	maxSubscribeRequests = 64        // of one stream under way at a time; the rest waits in the connection
	maxIdleWorkers       = 8         // of one stream; a new one would have to grow its stack again
	mostTogether         = 64        // deliveries that are written as one
	mostTogetherBytes    = 256 << 10 // unless a single one is larger

	accessPause = 5 * time.Second // how often a stream checks that its caller is still authorized (AUTH-4)
)

type subscribeStream = grpc.BidiStreamingServer[sidebusv1.SubscribeRequest, sidebusv1.SubscribeResponse]

// subscriber is one Subscribe stream. The call's goroutine writes events. Another goroutine reads requests and passes
// each to a worker, which writes its answer.
type subscriber struct {
	messages *Messages
	sub      *stream.Subscription
	source   semantics.Source

	writing sync.Mutex
	stream  subscribeStream

	places   chan struct{} // one slot for each request in progress
	requests sync.WaitGroup
	next     chan *sidebusv1.SubscribeRequest // for an idle worker
	idle     atomic.Int32                     // workers
	mu       sync.Mutex
	isOver   bool // no further request may begin
}

// Subscribe delivers messages and settles them; see stream.Subscription.
func (s *Messages) Subscribe(stream subscribeStream) error {
	first := &sidebusv1.SubscribeRequest{}
	err := recv(stream, first)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	c := &subscriber{
		messages: s, stream: stream, places: make(chan struct{}, maxSubscribeRequests),
		next: make(chan *sidebusv1.SubscribeRequest),
	}
	if err := c.open(first); err != nil {
		return err
	}
	defer c.sub.Detach(stream.Context()) // after a panic; any other end has come before
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	go c.watch(ctx, first, cancel)
	go func() {
		defer catch(cancel)
		if err := c.read(ctx, cancel); err != nil {
			cancel(err)
		}
	}()
	return c.end(ctx, c.write(ctx, first.GetRequestId()))
}

// watch ends the stream when the sidecar stops, or when its caller is no longer authorized: the token has expired, or
// the access rules have changed.
func (c *subscriber) watch(ctx context.Context, first *sidebusv1.SubscribeRequest, cancel context.CancelCauseFunc) {
	again := time.NewTicker(accessPause)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if err := access.Check(ctx, sidebusv1.Messages_Subscribe_FullMethodName, first); err != nil {
				cancel(err)
				return
			}
		case <-c.messages.stopping:
			cancel(stopped())
			return
		case <-ctx.Done():
			return
		}
	}
}

// end ends the subscription as the end of the stream requires. If the client has closed its side, it closes the
// subscription in order. Otherwise it waits for the answers in progress, and returns the cause of ctx, or err.
func (c *subscriber) end(ctx context.Context, err error) error {
	c.finish()
	if errors.Is(err, io.EOF) {
		c.sub.Close(ctx) // the reader has begun with it
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if c.stream.Context().Err() != nil || isGone(err) {
		c.sub.Drop(ctx)
	} else {
		c.sub.Detach(ctx)
	}
	rethrow(err)
	return err
}

// isGone reports whether the stream failed because its connection did. The stream may notice that before its context
// ends.
func isGone(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.Canceled
}

// open opens the subscription that the first request describes.
func (c *subscriber) open(request *sidebusv1.SubscribeRequest) error {
	if err := access.Check(c.stream.Context(), sidebusv1.Messages_Subscribe_FullMethodName, request); err != nil {
		return err
	}
	if err := checkRequest(request); err != nil {
		return err
	}
	open := request.GetOpen()
	if open == nil {
		return semantics.InvalidField("open", "must be the first request of the stream")
	}
	var options stream.Options
	var err error
	c.source, options, err = subscriptionOf(open)
	if err = c.messages.receivable(c.stream.Context(), open.GetSource(), err); err != nil {
		return err
	}
	c.sub, err = c.messages.broker.Subscribe(c.stream.Context(), c.source, options)
	return err
}

// subscriptionOf translates the source of a subscription and its options.
func subscriptionOf(open *sidebusv1.SubscribeOpen) (semantics.Source, stream.Options, error) {
	options := stream.DefaultOptions()
	options.ID, options.Prefetch = open.GetId(), int(open.GetPrefetch())
	source, err := sourceOf(open, open.GetSource(), open.GetSubQueue())
	if err != nil {
		return source, options, err
	}
	if options.Mode, err = modeOf(open.GetMode()); err != nil {
		return source, options, err
	}
	for _, number := range []struct {
		given *int32
		to    *int
	}{
		{open.Credits, &options.Credits},
		{open.MaxConcurrentSessions, &options.MaxSessions},
		{open.SessionInFlight, &options.SessionInFlight},
	} {
		if number.given != nil {
			*number.to = int(*number.given)
		}
	}
	if open.GetMaxAutoRenew() != nil {
		if options.MaxAutoRenew, err = wire.DurationOf("maxAutoRenew", open.GetMaxAutoRenew()); err != nil {
			return source, options, err
		}
	}
	if open.GetSessionIdle() != nil {
		options.SessionIdle, err = wire.DurationOf("sessionIdle", open.GetSessionIdle())
	}
	return source, options, err
}

// send writes a response, which may be encoded already. The stream permits one writer at a time.
func (c *subscriber) send(response any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.stream.SendMsg(response)
}

// write says that the stream stands and carries events to the client until the subscription ends, io.EOF or why, or ctx
// does, or the client is gone.
func (c *subscriber) write(ctx context.Context, requestID string) error {
	opened := &sidebusv1.SubscribeOpened{Sessions: c.sub.HasSessions()}
	err := c.send(
		&sidebusv1.SubscribeResponse{
			RequestId: requestID,
			Response:  &sidebusv1.SubscribeResponse_Opened{Opened: opened},
		},
	)
	for err == nil {
		var first stream.Event
		if first, err = c.sub.Next(ctx); err == nil {
			err = c.carry(ctx, c.gather(ctx, first))
		}
	}
	return err
}

// gather returns first and the events that are ready to follow it, up to a bound.
func (c *subscriber) gather(ctx context.Context, first stream.Event) []stream.Event {
	events := []stream.Event{first}
	for size := bytesOf(first); len(events) < mostTogether && size < mostTogetherBytes; {
		next, isReady := c.sub.Ready(ctx)
		if !isReady {
			break
		}
		events = append(events, next)
		size += bytesOf(next)
	}
	return events
}

func bytesOf(e stream.Event) (n int64) {
	if e.Delivery != nil {
		for _, m := range e.Delivery.Messages {
			n += m.Size
		}
	}
	return n
}

// carry writes events in order, and consecutive deliveries as one. It releases what cannot be written.
func (c *subscriber) carry(ctx context.Context, events []stream.Event) error {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[0].Delivery != nil && events[n].Delivery != nil {
			n++
		}
		if err := c.sendEvents(events[:n]); err != nil {
			for _, e := range events {
				c.sub.Undelivered(ctx, e)
			}
			return err
		}
		for _, e := range events[:n] {
			if e.Delivery != nil {
				c.messages.metrics.Received(ctx, e.Delivery.Source(), e.Delivery.Messages)
			}
			c.sub.Delivered(ctx, e)
		}
		events = events[n:]
	}
	return nil
}

// sendEvents writes one event, or several deliveries.
func (c *subscriber) sendEvents(events []stream.Event) error {
	if events[0].Delivery == nil {
		return c.send(responseFrom(events[0]))
	}
	response, err := deliveriesFrom(events)
	if err != nil {
		return err
	}
	return c.send(response)
}
