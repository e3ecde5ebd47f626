package sidebusv1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// Bounds of waiting for a sidecar that does not answer.
const (
	handleSettleTimeout = 10 * time.Second
	handleCloseTimeout  = 10 * time.Second
)

var errBroke = errors.New("the stream broke")

// handleStream is one Subscribe stream of a handling.
type handleStream struct {
	*handling

	stream grpc.BidiStreamingClient[SubscribeRequest, SubscribeResponse]
	ctx    context.Context //nolint:containedctx // of the handlers
	work   sync.WaitGroup  // the handlers
	ended  chan struct{}   // closed when nothing comes any more

	sending sync.Mutex

	mu       sync.Mutex
	isOver   bool                               // no handler begins any more
	asked    int                                // requests so far
	answers  map[string]chan *SubscribeResponse // that are waited for, by request id
	sessions map[string]*handledSession         // that are held, by token
	inHand   map[string]context.CancelCauseFunc // messages whose handlers run, by token
}

// handledSession is a session that the stream holds. All but its token is under the mutex of the stream.
type handledSession struct {
	token  string
	state  []byte
	queue  []*HandledMessage // that wait for the handler
	isBusy bool              // a goroutine works through the queue
	ctx    context.Context   //nolint:containedctx // of its handlers
	cancel context.CancelCauseFunc
}

// once handles what comes over one stream. It tells whether the stream stood, and why it ended; nil because ctx did.
func (h *handling) once(ctx context.Context) (opened bool, err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx, to settle what is in hand
	defer cancel()
	stopsOpening := context.AfterFunc(ctx, cancel)
	stream, err := h.client.Subscribe(life)
	if err != nil {
		return false, err
	}
	if err = stream.Send(&SubscribeRequest{Request: &SubscribeRequest_Open{Open: h.open}}); err == nil || errors.Is(err, io.EOF) {
		_, err = stream.Recv() // "opened", or why not
	}
	if err != nil {
		return false, err
	}
	stopsOpening()

	handlers, cancelHandlers := context.WithCancelCause(ctx)
	defer cancelHandlers(nil)
	s := &handleStream{
		handling: h, stream: stream, ctx: handlers, ended: make(chan struct{}), answers: map[string]chan *SubscribeResponse{},
		sessions: map[string]*handledSession{}, inHand: map[string]context.CancelCauseFunc{},
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
		s.work.Wait()
		return true, broke
	case <-ctx.Done():
	}
	s.stop()
	s.work.Wait()
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

// receive takes what comes until the stream ends, and gives the reason.
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
		case *SubscribeResponse_SessionOpened:
			s.sessionOpened(what.SessionOpened)
		case *SubscribeResponse_SessionClosed:
			s.sessionClosed(what.SessionClosed)
		case *SubscribeResponse_Deliveries:
			for _, d := range what.Deliveries.GetDeliveries() {
				s.take(d)
			}
		case *SubscribeResponse_LocksLost:
			s.locksLost(what.LocksLost.GetLockTokens())
		case *SubscribeResponse_Failure:
			s.failed(what.Failure)
		default: // answers without a request, and what this version does not know
		}
	}
}

func (s *handleStream) sessionOpened(opened *Session) {
	session := &handledSession{token: opened.GetLockToken(), state: opened.State} //nolint:protogetter // nil and empty differ (SESS-33)
	session.ctx, session.cancel = context.WithCancelCause(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[session.token] = session
}

func (s *handleStream) sessionClosed(closed *SubscribeSessionClosed) {
	if session := s.forget(closed.GetSessionLockToken()); session != nil {
		session.cancel(fmt.Errorf("the session %q is not held any more: %s", closed.GetSessionId(), closed.GetWhy()))
	}
}

// forget drops a session with the messages that wait for the handler; they can no longer be settled, or will not be handled.
func (s *handleStream) forget(token string) *handledSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[token]
	delete(s.sessions, token)
	if session != nil {
		session.queue = nil
	}
	return session
}

func (s *handleStream) locksLost(tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range tokens {
		if cancel := s.inHand[token]; cancel != nil {
			cancel(errors.New("the lock of the message is lost"))
		}
	}
}

// take gives messages that came to handlers: those of a session to one at a time.
func (s *handleStream) take(d *SubscribeDelivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[d.GetSessionLockToken()]
	if s.isOver || session == nil && d.GetSessionLockToken() != "" {
		return // they are given back with the stream, or were with the session
	}
	for _, received := range d.GetMessages() {
		m := &HandledMessage{ReceivedMessage: received, stream: s, session: session}
		if session == nil {
			s.work.Go(func() { s.handle(s.ctx, m) })
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
	for {
		s.mu.Lock()
		if len(session.queue) == 0 || s.isOver {
			session.isBusy = false
			s.mu.Unlock()
			return
		}
		m := session.queue[0]
		session.queue = session.queue[1:]
		s.mu.Unlock()
		s.handle(session.ctx, m)
		s.mu.Lock()
		outOfOrder := m.isGivenBack && s.open.GetSessionInFlight() > 1
		s.mu.Unlock()
		if outOfOrder { // those behind it are in hand already; they have to come again, after it
			s.forget(session.token)
			_ = s.send(&SubscribeRequest{Request: &SubscribeRequest_CloseSession{
				CloseSession: &SubscribeSession{SessionLockToken: session.token},
			}})
		}
	}
}

// handle calls the handler for one message and settles it.
func (s *handleStream) handle(ctx context.Context, m *HandledMessage) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.inHand[m.GetLockToken()] = cancel
	s.mu.Unlock()
	err := m.conclude(ctx, s.handler(ctx, m))
	s.mu.Lock()
	delete(s.inHand, m.GetLockToken())
	s.mu.Unlock()
	if err != nil {
		s.failed(fmt.Errorf("message %d of %s: %w", m.GetSequenceNumber(), s.open.GetSource(), err))
	}
}

func (s *handleStream) send(request *SubscribeRequest) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.Send(request)
}

// ask makes a request and waits for its answer. A *Failure says that it was refused.
func (s *handleStream) ask(ctx context.Context, request *SubscribeRequest) (*SubscribeResponse, error) {
	answer := make(chan *SubscribeResponse, 1)
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
	var response *SubscribeResponse
	select {
	case response = <-answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ended:
		select {
		case response = <-answer: // it came just before the end
		default:
			return nil, errBroke
		}
	}
	if failure := response.GetFailure(); failure != nil {
		return nil, failure
	}
	return response, nil
}
