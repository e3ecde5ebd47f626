package history

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// outside is the place of a sidecar that is a process of its own. When it is killed another one takes the place.
type outside struct {
	now   atomic.Pointer[wired]
	store *redisstore.Store
}

// wired is one such process as its clients reach it, by one of both wires.
type wired struct {
	*sidecartest.Sidecar
	messages sidebusv1.MessagesClient
	sessions sidebusv1.SessionsClient
	admin    sidebusv1.AdminClient
}

// startOutside starts sidecars that are processes of their own. Every other is spoken to over HTTP.
func (r *lossRun) startOutside() {
	r.t.Helper()
	r.sockets = r.t.TempDir()
	for range members {
		place := &outside{store: r.store}
		r.outside = append(r.outside, place)
		r.sidecars = append(r.sidecars, place)
		r.launch(place)
	}
}

func (r *lossRun) launch(place *outside) {
	r.t.Helper()
	r.launched++
	// Sockets of its own: the port of one that is gone may become that of another one, which its clients would then
	// find.
	overGRPC := filepath.Join(r.sockets, strconv.Itoa(r.launched))
	overHTTP := overGRPC + "h"
	sidecar := sidecartest.Launch(r.t, "--store", r.clock.URL, "--namespace", r.namespace, "--grpc-addr", "unix://"+overGRPC,
		"--http-addr", "unix://"+overHTTP)
	var conn grpc.ClientConnInterface
	if r.launched%2 == 0 {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", overHTTP)
		}}
		r.t.Cleanup(transport.CloseIdleConnections)
		conn = jsonConn{&http.Client{Transport: transport}}
	} else {
		dialed, err := grpc.NewClient("unix://"+overGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*semantics.MaxMessageSize)))
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = dialed.Close() })
		conn = dialed
	}
	place.now.Store(&wired{
		sidecar, sidebusv1.NewMessagesClient(conn), sidebusv1.NewSessionsClient(conn), sidebusv1.NewAdminClient(conn),
	})
}

// disturb kills a sidecar now and then. Without others in their place it does so only, and gives what puts them there.
func (r *lossRun) disturb() (restore func()) {
	r.t.Helper()
	if len(r.outside) == 0 || r.rng.IntN(3) > 0 {
		return func() {}
	}
	place := r.outside[r.rng.IntN(members)]
	place.now.Load().Kill()
	r.kills++
	r.killed = true
	return func() { r.launch(place) }
}

func (p *outside) send(ctx context.Context, target semantics.Target, requestID string, messages []*semantics.Message) error {
	request := &sidebusv1.SendRequest{Target: resource(target.Path)}
	if requestID != "" {
		request.RequestId = &requestID
	}
	for _, m := range messages {
		one := &sidebusv1.Message{MessageId: &m.MessageID, Subject: &m.Subject, Content: &sidebusv1.Message_Body{Body: m.Body}}
		if m.SessionID != "" {
			one.SessionId = &m.SessionID
		}
		if m.TimeToLive != nil {
			one.TimeToLive = wire(*m.TimeToLive)
		}
		if !m.ScheduledAt.IsZero() {
			one.ScheduledEnqueueTime = timestamppb.New(m.ScheduledAt)
		}
		request.Messages = append(request.Messages, one)
	}
	return p.call(ctx, func(ctx context.Context, w *wired) error {
		_, err := w.messages.Send(ctx, request)
		return err
	})
}

func (p *outside) receive(ctx context.Context, source semantics.Source, o broker.ReceiveOptions) ([]*semantics.Received, func() error, error) {
	most := int32(o.MaxMessages)
	request := &sidebusv1.ReceiveRequest{
		Source: resource(source.Path), MaxMessages: &most, MaxWait: wire(o.MaxWait), SubQueue: side(source), SessionLockToken: sessionLockOf(source),
	}
	if o.Mode == semantics.ReceiveAndDelete {
		request.Mode = sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
	}
	var response *sidebusv1.ReceiveResponse
	err := p.call(ctx, func(ctx context.Context, w *wired) (err error) {
		response, err = w.messages.Receive(ctx, request)
		return err
	})
	got, delivered, err := arrived(response, err)
	if o.Mode == semantics.ReceiveAndDelete { // the sidecar removes them once its answer is written, if it lives
		delivered = func() error {
			return &semantics.Error{
				Code: semantics.StoreUnavailable, Message: "removed later", Details: map[string]string{semantics.DetailOutcome: semantics.OutcomeUnknown},
			}
		}
	}
	return got, delivered, err
}

func (p *outside) receiveDeferred(ctx context.Context, source semantics.Source, numbers []int64) ([]*semantics.Received, func() error, error) {
	var response *sidebusv1.ReceiveResponse
	err := p.call(ctx, func(ctx context.Context, w *wired) (err error) {
		response, err = w.messages.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{Source: resource(source.Path), SequenceNumbers: numbers})
		return err
	})
	return arrived(response, err)
}

// arrived returns the messages of an answer as far as the checks need them.
func arrived(response *sidebusv1.ReceiveResponse, err error) (got []*semantics.Received, delivered func() error, _ error) {
	for _, m := range response.GetMessages() {
		token, _ := semantics.ParseLockToken(m.GetLockToken()) // there is none in mode ReceiveAndDelete
		one := &semantics.Received{
			Message:        semantics.Message{MessageID: m.GetMessageId(), SessionID: m.GetSessionId(), Body: m.GetBody()},
			SequenceNumber: m.GetSequenceNumber(), LockToken: token,
		}
		if m.LockedUntil != nil {
			one.LockedUntil = m.GetLockedUntil().AsTime()
		}
		got = append(got, one)
	}
	return got, func() error { return nil }, err
}

func (p *outside) settle(ctx context.Context, source semantics.Source, verb string, tokens []semantics.LockToken) (codes []semantics.Code, err error) {
	path, from, session := resource(source.Path), side(source), sessionLockOf(source)
	var texts []string
	for _, token := range tokens {
		texts = append(texts, token.String())
	}
	var response *sidebusv1.SettleResponse
	err = p.call(ctx, func(ctx context.Context, w *wired) (err error) {
		switch verb {
		case "abandon":
			response, err = w.messages.Abandon(ctx, &sidebusv1.AbandonRequest{Source: path, LockTokens: texts, SubQueue: from, SessionLockToken: session})
		case "defer":
			response, err = w.messages.Defer(ctx, &sidebusv1.DeferRequest{Source: path, LockTokens: texts, SubQueue: from, SessionLockToken: session})
		case "dead-letter":
			response, err = w.messages.DeadLetter(ctx, &sidebusv1.DeadLetterRequest{Source: path, LockTokens: texts, SubQueue: from, SessionLockToken: session})
		default:
			response, err = w.messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: path, LockTokens: texts, SubQueue: from, SessionLockToken: session})
		}
		return err
	})
	for _, result := range response.GetResults() {
		codes = append(codes, semantics.Code(result.GetReason()))
	}
	return codes, err
}

func (p *outside) turn(ctx context.Context, source semantics.Source, token semantics.LockToken) (
	codes []semantics.Code, next []*semantics.Received, failure, err error,
) {
	var response *sidebusv1.CompleteAndReceiveResponse
	err = p.call(ctx, func(ctx context.Context, w *wired) (err error) {
		response, err = w.messages.CompleteAndReceive(ctx, &sidebusv1.CompleteAndReceiveRequest{
			Source: resource(source.Path), LockTokens: []string{token.String()}, SessionLockToken: sessionLockOf(source),
		})
		return err
	})
	for _, result := range response.GetResults() {
		codes = append(codes, semantics.Code(result.GetReason()))
	}
	if f := response.GetFailure(); f != nil {
		failure = &semantics.Error{Code: semantics.Code(f.GetReason()), Message: f.GetMessage(), Details: f.GetDetails()}
	}
	next, _, _ = arrived(&sidebusv1.ReceiveResponse{Messages: response.GetMessages()}, nil)
	return codes, next, failure, err
}

func (p *outside) accept(ctx context.Context, path string, options broker.AcceptOptions) (held *semantics.Session, err error) {
	request := &sidebusv1.SessionsAcceptRequest{Source: resource(path), MaxWait: wire(options.MaxWait)}
	if options.SessionID != "" {
		request.SessionId = &options.SessionID
	}
	err = p.call(ctx, func(ctx context.Context, w *wired) error {
		response, err := w.sessions.Accept(ctx, request)
		if session := response.GetSession(); session != nil {
			held = &semantics.Session{
				ID: session.GetSessionId(), LockedUntil: session.GetLockedUntil().AsTime(), State: semantics.SessionState{Data: session.State},
			}
			held.Lock, err = semantics.ParseLockToken(session.GetLockToken())
		}
		return err
	})
	return held, err
}

func (p *outside) setState(ctx context.Context, source semantics.Source, state []byte) error {
	return p.call(ctx, func(ctx context.Context, w *wired) error {
		_, err := w.sessions.SetState(ctx, &sidebusv1.SessionsSetStateRequest{
			Source: resource(source.Path), LockToken: source.SessionLock.String(), State: state,
		})
		return err
	})
}

func (p *outside) closeSession(ctx context.Context, source semantics.Source) error {
	return p.call(ctx, func(ctx context.Context, w *wired) error {
		_, err := w.sessions.Close(ctx, &sidebusv1.SessionsCloseRequest{Source: resource(source.Path), LockToken: source.SessionLock.String()})
		return err
	})
}

// call makes one call of whatever process has the place.
func (p *outside) call(ctx context.Context, do func(context.Context, *wired) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	return asSemantics(do(ctx, p.now.Load()))
}
