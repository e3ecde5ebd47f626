package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// handleCloseTimeout bounds waiting for the end of a stream that was closed.
const handleCloseTimeout = 10 * time.Second

// handleStream is one Subscribe stream of a handling: what goes over the wire, and the goroutines. Their state is in
// held and requests, which have a mutex each.
type handleStream struct {
	*handling

	stream   sidebusv1.Messages_SubscribeClient
	held     *held
	requests *requests
	ended    chan struct{} // closed when nothing comes any more

	sending sync.Mutex
	granted int // credits, as the sidecar was told last; under sending
}

// runStream handles what comes over one stream. It reports whether the stream was opened, and why it ended: nil because
// ctx did.
func (h *handling) runStream(ctx context.Context) (opened bool, err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx, to settle what is in flight
	defer cancel()
	stopsOpening := context.AfterFunc(ctx, cancel)
	defer stopsOpening()
	stream, hasSessions, err := h.openStream(life)
	if err != nil {
		return false, err
	}
	stopsOpening()

	handlers, cancelHandlers := context.WithCancelCause(ctx)
	defer cancelHandlers(nil)
	s := &handleStream{handling: h, stream: stream, ended: make(chan struct{}), granted: h.credits}
	s.requests = newRequests(s.send, s.ended)
	s.held = newHeld(handlers, h, func(m *HandledMessage) { h.work.Go(func() { s.handleFrom(m) }) })
	var broke error
	go func() {
		defer close(s.ended)
		broke = s.receive()
		s.held.stop()
		cancelHandlers(fmt.Errorf("%w: %w", errBroke, broke))
	}()
	select {
	case <-s.ended:
		if !h.removes { // handlers of messages that were removed may outlive the stream
			h.work.Wait()
		}
		return true, broke
	case <-ctx.Done():
		s.close(hasSessions)
		forced := time.AfterFunc(handleCloseTimeout, cancel)
		defer forced.Stop()
		<-s.ended
		return true, nil
	}
}

func (h *handling) openStream(
	ctx context.Context,
) (stream sidebusv1.Messages_SubscribeClient, hasSessions bool, err error) {
	stream, err = h.client.Subscribe(ctx)
	if err != nil {
		return nil, false, err
	}
	err = stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: h.open}})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	first, err := stream.Recv() // "opened", or why not
	return stream, first.GetOpened().GetSessions(), err
}

// close lets no handler begin, waits for those that run, and ends the requests of the stream. After that the sidecar
// releases what was not settled.
func (s *handleStream) close(hasSessions bool) {
	s.held.stop()
	if !hasSessions { // what came now would only wait for the end; sessions are needed for their states
		_ = s.send(creditsRequest(0))
	}
	s.work.Wait()
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.stream.CloseSend() // a stream that broke needs none
}

// receive processes what comes until the stream ends, and returns the reason.
func (s *handleStream) receive() error {
	for {
		r, err := s.stream.Recv()
		if err != nil {
			return err
		}
		if r.GetRequestId() != "" {
			s.requests.answered(r)
			continue
		}
		switch what := r.GetResponse().(type) {
		case *sidebusv1.SubscribeResponse_SessionOpened:
			s.held.sessionOpened(what.SessionOpened)
		case *sidebusv1.SubscribeResponse_SessionClosed:
			s.held.sessionClosed(what.SessionClosed)
		case *sidebusv1.SubscribeResponse_Deliveries:
			for _, d := range what.Deliveries.GetDeliveries() {
				s.held.delivered(d.GetSessionLockToken(), s.handledMessages(d.GetMessages()))
			}
		case *sidebusv1.SubscribeResponse_LocksLost:
			s.held.locksLost(what.LocksLost.GetLockTokens())
		case *sidebusv1.SubscribeResponse_Failure:
			s.onError(errorOfFailure(what.Failure))
		default: // answers without a request, and what this version does not know
		}
	}
}

func (s *handleStream) send(request *sidebusv1.SubscribeRequest) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.Send(request)
}

// addCredits changes how many messages the sidecar may deliver.
func (s *handleStream) addCredits(more int) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.granted += more
	if !s.held.hasStopped() { // a stream that ends keeps the credits that it has
		_ = s.stream.Send(creditsRequest(s.granted)) // a stream that broke needs none
	}
}

// closeSession closes a session. If the session has ended meanwhile, the request fails. That failure goes to the id of
// the request, for which nothing waits.
func (s *handleStream) closeSession(session *handledSession) {
	_ = s.send(&sidebusv1.SubscribeRequest{ // a stream that broke needs none
		RequestId: "close",
		Request: &sidebusv1.SubscribeRequest_CloseSession{
			CloseSession: &sidebusv1.SubscribeSession{SessionLockToken: session.token},
		},
	})
}

func creditsRequest(n int) *sidebusv1.SubscribeRequest {
	credits := &sidebusv1.SubscribeCredits{Credits: int32(n)}
	return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Credits{Credits: credits}}
}
