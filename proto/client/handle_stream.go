package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// handleCloseTimeout bounds waiting for the end of a stream that was closed.
const handleCloseTimeout = 10 * time.Second

// errBroke is what a request on a stream that broke fails with. It may have taken effect.
var errBroke = &Error{Code: CodeConnectionLost, Message: "the stream broke", Retryable: true, OutcomeUnknown: true}

// handleStream is one Subscribe stream of a handling.
type handleStream struct {
	*handling

	stream      grpc.BidiStreamingClient[sidebusv1.SubscribeRequest, sidebusv1.SubscribeResponse]
	hasSessions bool
	ctx         context.Context //nolint:containedctx // of the handlers
	ended       chan struct{}   // closed when nothing comes any more

	sending sync.Mutex
	granted int // credits, as the sidecar was told last; under sending

	mu       sync.Mutex
	isOver   bool                                         // no handler begins any more
	asked    int                                          // requests so far
	answers  map[string]chan *sidebusv1.SubscribeResponse // that are waited for, by request id
	sessions map[string]*handledSession                   // that are held, by token
	inFlight map[string]*HandledMessage                   // that handlers have, or are about to, by token
}

// handledSession is a session that the stream holds. All but id and token is under the mutex of the stream.
type handledSession struct {
	id, token string
	state     []byte
	queue     []*HandledMessage // that wait for the handler
	isBusy    bool              // a goroutine works through the queue
}

// once handles what comes over one stream. It reports whether the stream was opened, and why it ended: nil because ctx
// did.
func (h *handling) once(ctx context.Context) (opened bool, err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx, to settle what is in flight
	defer cancel()
	stopsOpening := context.AfterFunc(ctx, cancel)
	stream, err := h.client.Subscribe(life)
	if err != nil {
		return false, err
	}
	var first *sidebusv1.SubscribeResponse
	err = stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: h.open}})
	if err == nil || errors.Is(err, io.EOF) {
		first, err = stream.Recv() // "opened", or why not
	}
	if err != nil {
		return false, err
	}
	stopsOpening()

	handlers, cancelHandlers := context.WithCancelCause(ctx)
	defer cancelHandlers(nil)
	s := &handleStream{
		handling: h, stream: stream, hasSessions: first.GetOpened().GetSessions(), ctx: handlers,
		ended:   make(chan struct{}),
		granted: h.credits, answers: map[string]chan *sidebusv1.SubscribeResponse{},
		sessions: map[string]*handledSession{}, inFlight: map[string]*HandledMessage{},
	}
	var broke error
	go func() {
		defer close(s.ended)
		broke = s.receive()
		s.stop()
		cancelHandlers(fmt.Errorf("%w: %w", errBroke, broke))
	}()
	select {
	case <-s.ended:
		if !h.removes { // what was removed is of no stream any more
			h.work.Wait()
		}
		return true, broke
	case <-ctx.Done():
	}
	s.stop()
	if !s.hasSessions { // what came now would only wait for the end; sessions are needed for their states
		_ = s.send(creditsRequest(0))
	}
	h.work.Wait()
	s.sending.Lock()
	_ = stream.CloseSend() // what was not settled is given back; a stream that broke needs none
	s.sending.Unlock()
	forced := time.AfterFunc(handleCloseTimeout, cancel)
	defer forced.Stop()
	<-s.ended
	return true, nil
}

// stop lets no handler begin any more.
func (s *handleStream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOver = true
}

// receive takes what comes until the stream ends, and returns the reason.
func (s *handleStream) receive() error {
	for {
		r, err := s.stream.Recv()
		if err != nil {
			return err
		}
		if id := r.GetRequestId(); id != "" {
			s.mu.Lock()
			answer := s.answers[id]
			s.mu.Unlock()
			if answer != nil {
				answer <- r
			}
			continue
		}
		switch what := r.GetResponse().(type) {
		case *sidebusv1.SubscribeResponse_SessionOpened:
			s.sessionOpened(what.SessionOpened)
		case *sidebusv1.SubscribeResponse_SessionClosed:
			s.sessionClosed(what.SessionClosed)
		case *sidebusv1.SubscribeResponse_Deliveries:
			for _, d := range what.Deliveries.GetDeliveries() {
				s.take(d)
			}
		case *sidebusv1.SubscribeResponse_LocksLost:
			s.locksLost(what.LocksLost.GetLockTokens())
		case *sidebusv1.SubscribeResponse_Failure:
			s.failed(errorOfFailure(what.Failure))
		default: // answers without a request, and what this version does not know
		}
	}
}

func (s *handleStream) sessionOpened(opened *sidebusv1.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[opened.GetLockToken()] = &handledSession{
		id: opened.GetSessionId(), token: opened.GetLockToken(),
		state: opened.State, //nolint:protogetter // nil and empty differ (SESS-33)
	}
}

func (s *handleStream) sessionClosed(closed *sidebusv1.SubscribeSessionClosed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := closed.GetSessionLockToken()
	s.forget(token)
	for _, m := range s.inFlight {
		if m.session != nil && m.session.token == token {
			s.lose(m, fmt.Errorf("the session %q is not held any more: %s", closed.GetSessionId(), closed.GetWhy()))
		}
	}
}

// forget drops a session with the messages that wait for the handler: they come again. The caller holds the mutex.
func (s *handleStream) forget(token string) {
	if session := s.sessions[token]; session != nil {
		session.queue = nil
		delete(s.sessions, token)
	}
}

func (s *handleStream) locksLost(tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokens {
		if m := s.inFlight[token]; m != nil {
			s.lose(m, errors.New("the lock of the message is lost"))
		}
	}
}

// take hands messages that came to handlers: those of a session to one at a time.
func (s *handleStream) take(d *sidebusv1.SubscribeDelivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[d.GetSessionLockToken()]
	if s.isOver || session == nil && d.GetSessionLockToken() != "" {
		return // they are given back with the stream, or were with the session
	}
	for _, received := range d.GetMessages() {
		m := &HandledMessage{
			ReceivedMessage: receivedMessage(received), stream: s, session: session, token: received.GetLockToken(),
			lost: make(chan struct{}),
		}
		if session == nil {
			s.book(m)
			s.work.Go(func() { s.handle(m) })
		} else {
			session.queue = append(session.queue, m)
		}
	}
	if session != nil && !session.isBusy {
		session.isBusy = true
		s.work.Go(func() { s.handleSession(session) })
	}
}

// handleSession works through the queue of a session.
func (s *handleStream) handleSession(session *handledSession) {
	for m := s.next(session); m != nil; m = s.next(session) {
		s.handle(m)
		if s.leavesGap(m) {
			_ = s.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_CloseSession{
				CloseSession: &sidebusv1.SubscribeSession{SessionLockToken: session.token},
			}})
		}
	}
}

// next returns the next message of a session, nil when there is none for now.
func (s *handleStream) next(session *handledSession) *HandledMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(session.queue) == 0 || s.isOver {
		session.isBusy = false
		return nil
	}
	m := session.queue[0]
	session.queue = session.queue[1:]
	s.book(m)
	return m
}

// leavesGap reports whether a message was given back while those behind it are in flight already: they have to come
// again, after it.
func (s *handleStream) leavesGap(m *HandledMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.isGivenBack || s.open.GetSessionInFlight() <= 1 {
		return false
	}
	s.forget(m.session.token)
	return true
}

func (s *handleStream) send(request *sidebusv1.SubscribeRequest) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.Send(request)
}

// want changes for how many messages there are handlers.
func (s *handleStream) want(more int) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.granted += more
	s.mu.Lock()
	isOver := s.isOver
	s.mu.Unlock()
	if !isOver {
		_ = s.stream.Send(creditsRequest(s.granted)) // a stream that broke needs none
	}
}

func creditsRequest(n int) *sidebusv1.SubscribeRequest {
	credits := &sidebusv1.SubscribeCredits{Credits: int32(n)}
	return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Credits{Credits: credits}}
}

// ask makes a request and waits for its answer. The error is an *Error, or that of ctx in one.
func (s *handleStream) ask(
	ctx context.Context, request *sidebusv1.SubscribeRequest,
) (*sidebusv1.SubscribeResponse, error) {
	answer := make(chan *sidebusv1.SubscribeResponse, 1)
	s.mu.Lock()
	s.asked++
	request.RequestId = strconv.Itoa(s.asked)
	s.answers[request.RequestId] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.answers, request.RequestId)
		s.mu.Unlock()
	}()
	if err := s.send(request); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroke, err)
	}
	var response *sidebusv1.SubscribeResponse
	select {
	case response = <-answer:
	case <-ctx.Done():
		return nil, cancelled(ctx, &Error{Code: CodeCancelled, Message: ctx.Err().Error(), OutcomeUnknown: true})
	case <-s.ended:
		select {
		case response = <-answer: // it came just before the end
		default:
			return nil, errBroke
		}
	}
	if failure := response.GetFailure(); failure != nil {
		return nil, errorOfFailure(failure)
	}
	return response, nil
}
