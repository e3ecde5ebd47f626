package client

import (
	"context"
	"errors"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// HandledMessage is a message that a [Handler] processes. Its methods may be called concurrently. Those that settle
// block until it is done, and repeat what fails for a reason that passes, until ctx ends or the lock is lost. Their
// errors are those of [Receiver.CompleteMessage].
type HandledMessage struct {
	*ReceivedMessage

	stream  *handleStream
	session *handledSession // nil: of none
	token   string
	ctx     context.Context //nolint:containedctx // of the handler
	cancel  context.CancelCauseFunc
	lost    chan struct{} // closed when the lock is known to be lost

	// Guarded by the mutex of held.
	isSettled   bool // or can no longer be
	isGivenBack bool // abandoned or released
	hasReturned bool // its handler
}

func (s *handleStream) handledMessages(delivered []*sidebusv1.ReceivedMessage) []*HandledMessage {
	messages := make([]*HandledMessage, len(delivered))
	for i, d := range delivered {
		messages[i] = &HandledMessage{
			ReceivedMessage: receivedMessage(d), stream: s, token: d.GetLockToken(), lost: make(chan struct{}),
		}
	}
	return messages
}

// Complete removes the message for good.
func (m *HandledMessage) Complete(ctx context.Context) error {
	verb := &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}}
	return m.settle(ctx, &sidebusv1.SubscribeSettle{Verb: verb}, false)
}

// Abandon makes the message available again with one delivery more. options may be nil.
func (m *HandledMessage) Abandon(ctx context.Context, options *AbandonMessageOptions) error {
	request, err := abandonRequest(options)
	if err != nil {
		return err
	}
	return m.settle(ctx, &sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Abandon{Abandon: request}}, true)
}

// DeadLetter moves the message to the dead-letter queue. options may be nil.
func (m *HandledMessage) DeadLetter(ctx context.Context, options *DeadLetterOptions) error {
	request, err := deadLetterRequest(options)
	if err != nil {
		return err
	}
	return m.settle(
		ctx, &sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_DeadLetter{DeadLetter: request}}, false,
	)
}

// Defer sets the message aside until it is received by its sequence number. options may be nil.
func (m *HandledMessage) Defer(ctx context.Context, options *DeferMessageOptions) error {
	request, err := deferRequest(options)
	if err != nil {
		return err
	}
	return m.settle(ctx, &sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Defer{Defer: request}}, false)
}

// Release makes the message available again and counts nothing.
func (m *HandledMessage) Release(ctx context.Context) error {
	verb := &sidebusv1.SubscribeSettle_Release{Release: &sidebusv1.ReleaseRequest{}}
	return m.settle(ctx, &sidebusv1.SubscribeSettle{Verb: verb}, true)
}

// SessionState returns the state that is kept with the message's session, nil when there is none or no session. It
// makes no call: while the session is held no other client changes it.
func (m *HandledMessage) SessionState() []byte {
	if m.session == nil {
		return nil
	}
	return m.stream.held.sessionState(m.session)
}

// SetSessionState replaces that state; nil clears it, an empty one is a value. It blocks until it is stored. Without a
// session it fails with [CodeInvalidOperation], else as [SessionReceiver.SetSessionState] does.
func (m *HandledMessage) SetSessionState(ctx context.Context, state []byte) error {
	if m.session == nil {
		return &Error{Code: CodeInvalidOperation, Message: "the message is of no session"}
	}
	_, err := m.stream.requests.ask(ctx, &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_SetState{
		SetState: &sidebusv1.SubscribeSetState{SessionLockToken: m.session.token, State: state},
	}})
	if err == nil {
		m.stream.held.setSessionState(m.session, state)
	}
	if errors.Is(err, CodeSessionLockLost) {
		m.stream.held.sessionLost(m.session)
	}
	return err
}

func (m *HandledMessage) settle(ctx context.Context, settle *sidebusv1.SubscribeSettle, givesBack bool) error {
	if m.LockToken == "" {
		return &Error{Code: CodeInvalidOperation, Message: "the message was removed before its handler began"} // RECV-3
	}
	settle.LockTokens = []string{m.token}
	err := m.settleWithRetries(ctx, settle)
	switch {
	case err == nil:
		m.noteSettled(givesBack)
	case errors.Is(err, CodeMessageLockLost):
		m.noteSettled(true) // by another, or the lock has expired: it may come again
	case errors.Is(err, CodeSessionLockLost):
		m.stream.held.sessionLost(m.session)
		m.noteSettled(true)
	case givesBack && m.stream.isManual && ErrorOf(err).OutcomeUnknown:
		m.noteSettled(true) // if it was given back, those behind it must not be handled before it (SESS-28)
	}
	return err
}

func (m *HandledMessage) noteSettled(isGivenBack bool) {
	if m.stream.held.settled(m, isGivenBack) {
		m.stream.closeSession(m.session)
	}
}

// conclude settles the message by what its handler returned.
func (m *HandledMessage) conclude(outcome error) error {
	hasEnded := m.ctx.Err() != nil
	ctx, cancel := m.stream.settlementContext()
	defer cancel()
	var deadLetter *DeadLetterError
	switch {
	case m.stream.isManual:
		return outcome
	case m.stream.held.isSettled(m):
		return nil
	case outcome == nil:
		return m.Complete(ctx)
	case errors.As(outcome, &deadLetter):
		reason, description := cutText(deadLetter.Reason), cutText(deadLetter.Description)
		return m.DeadLetter(ctx, &DeadLetterOptions{Reason: &reason, ErrorDescription: &description})
	case hasEnded:
		return m.Release(ctx)
	default:
		return m.Abandon(ctx, nil)
	}
}
