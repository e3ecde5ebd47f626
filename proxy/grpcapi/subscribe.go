package grpcapi

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

const (
	maxRequestID = 128 // characters

	maxSubscribeRequests = 64        // of one stream under way at a time; the rest waits in the connection
	mostTogether         = 64        // deliveries that are written as one
	mostTogetherBytes    = 256 << 10 // unless the first is larger
)

type subscribeStream = grpc.BidiStreamingServer[sidebusv1.SubscribeRequest, sidebusv1.SubscribeResponse]

// subscriber is one Subscribe stream.
type subscriber struct {
	messages *Messages
	sub      *semantics.Subscription
	source   semantics.Source

	mu     sync.Mutex // of writing
	stream subscribeStream
}

// Subscribe delivers messages and takes what is done with them; see semantics.Subscription.
func (s *Messages) Subscribe(stream subscribeStream) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	c := &subscriber{messages: s, stream: stream}
	if err := c.open(first); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	var reader sync.WaitGroup
	reader.Go(func() { c.read(ctx) })
	err = c.write(ctx)
	switch {
	case errors.Is(err, io.EOF):
		err = nil
	case stream.Context().Err() != nil:
		c.sub.Drop(ctx)
	default:
		c.sub.Detach(context.WithoutCancel(ctx))
		if semantics.CodeOf(err) == semantics.Cancelled {
			err = stopped()
		}
	}
	// The reader ends with the stream, which ends when this returns; nothing of it is needed any more.
	return err
}

// open begins the subscription that the first request asks for.
func (c *subscriber) open(request *sidebusv1.SubscribeRequest) error {
	if err := refuseUnknown("request", request); err != nil {
		return err
	}
	if err := checkRequestID(request.GetRequestId()); err != nil {
		return err
	}
	open := request.GetOpen()
	if open == nil {
		return fieldError("open", "must be the first request of the stream")
	}
	source, err := sourceOf(open, open.GetSource(), open.GetSubQueue())
	if err != nil {
		return err
	}
	options := semantics.DefaultSubscribeOptions()
	options.ID = open.GetId()
	if options.Mode, err = modeOf(open.GetMode()); err != nil {
		return err
	}
	for _, number := range []struct {
		given *int32
		to    *int
	}{
		{open.Credits, &options.Credits}, {open.MaxConcurrentSessions, &options.MaxSessions}, {open.SessionInFlight, &options.SessionInFlight},
	} {
		if number.given != nil {
			*number.to = int(*number.given)
		}
	}
	if open.GetMaxAutoRenew() != nil {
		if options.MaxAutoRenew, err = duration("maxAutoRenew", open.GetMaxAutoRenew()); err != nil {
			return err
		}
	}
	if open.GetSessionIdle() != nil {
		if options.SessionIdle, err = duration("sessionIdle", open.GetSessionIdle()); err != nil {
			return err
		}
	}
	if c.sub, err = c.messages.broker.Subscribe(c.stream.Context(), source, options); err != nil {
		return err
	}
	c.source = source
	return c.send(&sidebusv1.SubscribeResponse{
		RequestId: request.GetRequestId(),
		Response:  &sidebusv1.SubscribeResponse_Opened{Opened: &sidebusv1.SubscribeOpened{Sessions: c.sub.HasSessions()}},
	})
}

func checkRequestID(id string) error {
	if n := utf8.RuneCountInString(id); n > maxRequestID {
		return fieldError("requestId", "is %d characters long, at most %d are allowed", n, maxRequestID)
	}
	return nil
}

func (c *subscriber) send(response *sidebusv1.SubscribeResponse) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.Send(response)
}

// write carries events to the client until the subscription ends, io.EOF or why, or the client is gone.
func (c *subscriber) write(ctx context.Context) error {
	for {
		e, err := c.sub.Next(ctx)
		if err != nil {
			return err
		}
		events := []semantics.Event{e}
		for size := bytesOf(e); len(events) < mostTogether && size < mostTogetherBytes; {
			next, ok := c.sub.Ready()
			if !ok {
				break
			}
			events = append(events, next)
			size += bytesOf(next)
		}
		if err := c.carry(ctx, events); err != nil {
			return err
		}
	}
}

func bytesOf(e semantics.Event) (n int64) {
	if e.Delivery != nil {
		for _, m := range e.Delivery.Messages {
			n += m.Size
		}
	}
	return n
}

// carry writes events in their order, deliveries that follow one another as one. What cannot be written is given back.
func (c *subscriber) carry(ctx context.Context, events []semantics.Event) error {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[0].Delivery != nil && events[n].Delivery != nil {
			n++
		}
		if err := c.send(c.responseFrom(events[:n])); err != nil {
			for _, e := range events {
				c.sub.Undelivered(ctx, e)
			}
			return err
		}
		for _, e := range events[:n] {
			if e.Delivery != nil {
				c.messages.metrics.MessagesReceived.Add(float64(len(e.Delivery.Messages)))
				_ = e.Delivery.Delivered(ctx) // what could not be removed comes again when its lock ends
			}
		}
		events = events[n:]
	}
	return nil
}

var whys = map[semantics.SessionEnd]sidebusv1.SubscribeSessionClosed_Why{
	semantics.SessionIdle:    sidebusv1.SubscribeSessionClosed_IDLE,
	semantics.SessionYielded: sidebusv1.SubscribeSessionClosed_YIELDED,
	semantics.SessionClosed:  sidebusv1.SubscribeSessionClosed_CLOSED,
	semantics.SessionLost:    sidebusv1.SubscribeSessionClosed_LOST,
	semantics.SessionDrained: sidebusv1.SubscribeSessionClosed_DRAINING,
}

// responseFrom translates one event, or several deliveries.
func (c *subscriber) responseFrom(events []semantics.Event) *sidebusv1.SubscribeResponse {
	e := events[0]
	switch {
	case e.Delivery != nil:
		all := &sidebusv1.SubscribeDeliveries{Deliveries: make([]*sidebusv1.SubscribeDelivery, len(events))}
		for i, e := range events {
			all.Deliveries[i] = &sidebusv1.SubscribeDelivery{Messages: receivedFrom(e.Delivery.Messages, false)}
			if lock := e.Delivery.Source().SessionLock; !lock.IsZero() {
				all.Deliveries[i].SessionLockToken = lock.String()
			}
		}
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Deliveries{Deliveries: all}}
	case e.SessionOpened != nil:
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionOpened{SessionOpened: sessionFrom(e.SessionOpened)}}
	case e.SessionClosed != nil:
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionClosed{
			SessionClosed: &sidebusv1.SubscribeSessionClosed{
				SessionId: e.SessionClosed.ID, SessionLockToken: e.SessionClosed.Lock.String(), Why: whys[e.SessionClosed.Why],
			},
		}}
	case e.LocksLost != nil:
		lost := &sidebusv1.SubscribeLocksLost{}
		for _, token := range e.LocksLost {
			lost.LockTokens = append(lost.LockTokens, token.String())
		}
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_LocksLost{LocksLost: lost}}
	default:
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Failure{Failure: failureFrom(e.Failure)}}
	}
}

// read takes the client's requests until it closes its side or is gone, and ends the subscription then. Requests are carried
// out side by side; credits at once.
func (c *subscriber) read(ctx context.Context) {
	work := errgroup.Group{}
	work.SetLimit(maxSubscribeRequests)
	for {
		request, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			_ = work.Wait()
			c.sub.Close(context.WithoutCancel(ctx))
			return
		}
		if err != nil {
			_ = work.Wait()
			c.sub.Drop(ctx)
			return
		}
		if credits := request.GetCredits(); credits != nil {
			c.answer(request, nil, c.setCredits(request))
			continue
		}
		work.Go(func() error {
			response, err := c.carryOut(ctx, request)
			c.answer(request, response, err)
			return nil
		})
	}
}

// answer writes the outcome of a request that wants it. A client that is gone does not get it.
func (c *subscriber) answer(request *sidebusv1.SubscribeRequest, response *sidebusv1.SubscribeResponse, err error) {
	if err != nil {
		response = &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Failure{Failure: failureFrom(err)}}
	} else if response == nil || request.GetRequestId() == "" {
		return
	}
	response.RequestId = request.GetRequestId()
	_ = c.send(response)
}

func (c *subscriber) setCredits(request *sidebusv1.SubscribeRequest) error {
	if err := c.check(request); err != nil {
		return err
	}
	return c.sub.SetCredits(int(request.GetCredits().GetCredits()))
}

func (c *subscriber) check(request *sidebusv1.SubscribeRequest) error {
	if err := refuseUnknown("request", request); err != nil {
		return err
	}
	return checkRequestID(request.GetRequestId())
}

// carryOut does what one request asks for.
func (c *subscriber) carryOut(ctx context.Context, request *sidebusv1.SubscribeRequest) (*sidebusv1.SubscribeResponse, error) {
	if err := c.check(request); err != nil {
		return nil, err
	}
	switch r := request.GetRequest().(type) {
	case *sidebusv1.SubscribeRequest_Settle:
		settled, err := c.settle(ctx, r.Settle)
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Settled{Settled: settled}}, err
	case *sidebusv1.SubscribeRequest_RenewLocks:
		tokens, err := tokensOf(r.RenewLocks.GetLockTokens())
		if err != nil {
			return nil, err
		}
		renewed, err := c.messages.renewLocks(ctx, c.source, r.RenewLocks.GetLockTokens(), tokens)
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Renewed{Renewed: renewed}}, err
	case *sidebusv1.SubscribeRequest_RenewSession:
		session, err := c.session(r.RenewSession.GetSessionLockToken())
		if err != nil {
			return nil, err
		}
		until, err := c.messages.broker.RenewSessionLock(ctx, session)
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionRenewed{
			SessionRenewed: &sidebusv1.SessionsRenewLockResponse{LockedUntil: timestamp(until)},
		}}, err
	case *sidebusv1.SubscribeRequest_CloseSession:
		session, err := c.session(r.CloseSession.GetSessionLockToken())
		if err != nil {
			return nil, err
		}
		return nil, c.sub.CloseSession(session.SessionLock)
	case *sidebusv1.SubscribeRequest_GetState:
		session, err := c.session(r.GetState.GetSessionLockToken())
		if err != nil {
			return nil, err
		}
		state, err := c.messages.broker.SessionState(ctx, session)
		return stateResponse(state), err
	case *sidebusv1.SubscribeRequest_SetState:
		session, err := c.session(r.SetState.GetSessionLockToken())
		if err != nil {
			return nil, err
		}
		version, err := c.messages.broker.SetSessionState(ctx, session, r.SetState.State, r.SetState.ExpectedVersion) //nolint:protogetter // nil and empty differ
		return stateResponse(semantics.SessionState{Version: version}), err
	case *sidebusv1.SubscribeRequest_Open:
		return nil, fieldError("open", "was given before; open another stream")
	default:
		return nil, fieldError("request", "must ask for something")
	}
}

func stateResponse(state semantics.SessionState) *sidebusv1.SubscribeResponse {
	return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_State{
		State: &sidebusv1.SessionsGetStateResponse{State: state.Data, Version: state.Version},
	}}
}

// session translates the token of a session.
func (c *subscriber) session(token string) (semantics.Source, error) {
	lock, err := sessionLock("sessionLockToken", token)
	return c.sub.Source(lock), err
}

func (c *subscriber) settle(ctx context.Context, request *sidebusv1.SubscribeSettle) (*sidebusv1.SettleResponse, error) {
	broker := c.messages.broker
	var name string
	var verb settleVerb
	var rest lockRequest
	var err error
	switch v := request.GetVerb().(type) {
	case *sidebusv1.SubscribeSettle_Complete:
		name, verb, rest = obs.Complete, broker.Complete, v.Complete
	case *sidebusv1.SubscribeSettle_Release:
		name, verb, rest = obs.Release, broker.Release, v.Release
	case *sidebusv1.SubscribeSettle_Abandon:
		name, rest = obs.Abandon, v.Abandon
		verb, err = c.messages.abandonVerb(v.Abandon)
	case *sidebusv1.SubscribeSettle_Defer:
		name, rest = obs.Defer, v.Defer
		verb, err = c.messages.deferVerb(v.Defer)
	case *sidebusv1.SubscribeSettle_DeadLetter:
		name, rest = obs.DeadLetter, v.DeadLetter
		verb, err = c.messages.deadLetterVerb(v.DeadLetter)
	default:
		err = fieldError("verb", "must be complete, abandon, deadLetter, defer or release")
	}
	if err != nil {
		return nil, err
	}
	if rest.GetSource() != "" || len(rest.GetLockTokens()) > 0 {
		return nil, fieldError("lockTokens", "must stand in settle itself, and no source with them: the stream knows it")
	}
	if err := refuseUnknown("verb", rest); err != nil {
		return nil, err
	}
	tokens, err := tokensOf(request.GetLockTokens())
	if err != nil {
		return nil, err
	}
	codes, err := c.sub.Settle(ctx, tokens, verb)
	if err != nil {
		return nil, err
	}
	c.messages.metrics.Settled(name, codes)
	return settledFrom(request.GetLockTokens(), codes), nil
}

// failureFrom translates an error into what is told on a stream, the same as the body of a failed HTTP call.
func failureFrom(err error) *sidebusv1.Failure {
	_, body, _ := wireerror.HTTP(wireerror.Of(err))
	failure := &sidebusv1.Failure{
		Reason: string(body.Reason), Message: strings.ToValidUTF8(body.Message, "\uFFFD"), Retryable: body.Retryable,
		Details: make(map[string]string, len(body.Details)),
	}
	for key, value := range body.Details {
		failure.Details[key] = strings.ToValidUTF8(value, "\uFFFD") // may hold a cut piece of what the client sent
	}
	if after := semantics.AsError(err).RetryAfter; after > 0 {
		failure.RetryAfter = durationpb.New(after)
	}
	return failure
}
