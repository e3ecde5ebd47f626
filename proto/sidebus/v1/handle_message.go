package sidebusv1

import (
	"context"
	"errors"
	"strings"
)

// HandledMessage is a message in the hands of a Handler. Its methods may be called concurrently. Those that settle try again what is
// refused for a reason that passes, until ctx ends or the lock is lost.
type HandledMessage struct {
	*ReceivedMessage

	stream  *handleStream
	session *handledSession // nil: of none
	token   string
	ctx     context.Context //nolint:containedctx // of the handler
	cancel  context.CancelCauseFunc
	lost    chan struct{} // closed when the lock is known to be lost

	// Under the mutex of the stream.
	isSettled   bool
	isGivenBack bool
	hasReturned bool // its handler
}

// Complete removes the message for good.
func (m *HandledMessage) Complete(ctx context.Context) error {
	return m.settle(ctx, &SubscribeSettle{Verb: &SubscribeSettle_Complete{Complete: &CompleteRequest{}}}, false)
}

// Abandon gives the message back with one delivery more. Of options, which may be nil, delay, properties and skip_order count.
func (m *HandledMessage) Abandon(ctx context.Context, options *AbandonRequest) error {
	if options == nil {
		options = &AbandonRequest{}
	}
	return m.settle(ctx, &SubscribeSettle{Verb: &SubscribeSettle_Abandon{Abandon: options}}, true)
}

// DeadLetter moves the message to the dead-letter queue. Of options, which may be nil, reason, description and properties count.
func (m *HandledMessage) DeadLetter(ctx context.Context, options *DeadLetterRequest) error {
	if options == nil {
		options = &DeadLetterRequest{}
	}
	return m.settle(ctx, &SubscribeSettle{Verb: &SubscribeSettle_DeadLetter{DeadLetter: options}}, false)
}

// Defer sets the message aside until it is received by its sequence number. Of options, which may be nil, properties count.
func (m *HandledMessage) Defer(ctx context.Context, options *DeferRequest) error {
	if options == nil {
		options = &DeferRequest{}
	}
	return m.settle(ctx, &SubscribeSettle{Verb: &SubscribeSettle_Defer{Defer: options}}, false)
}

// Release gives the message back uncounted.
func (m *HandledMessage) Release(ctx context.Context) error {
	return m.settle(ctx, &SubscribeSettle{Verb: &SubscribeSettle_Release{Release: &ReleaseRequest{}}}, true)
}

// SessionState is the note that is kept with the message's session, nil when there is none (SESS-31). It makes no call: while the
// session is held nobody else changes it.
func (m *HandledMessage) SessionState() []byte {
	if m.session == nil {
		return nil
	}
	m.stream.mu.Lock()
	defer m.stream.mu.Unlock()
	return m.session.state
}

// SetSessionState replaces that note; nil clears it, empty is a value (SESS-33).
func (m *HandledMessage) SetSessionState(ctx context.Context, state []byte) error {
	if m.session == nil {
		return errors.New("the message is of no session")
	}
	_, err := m.stream.ask(ctx, &SubscribeRequest{Request: &SubscribeRequest_SetState{
		SetState: &SubscribeSetState{SessionLockToken: m.session.token, State: state},
	}})
	if err == nil {
		m.stream.mu.Lock()
		m.session.state = state
		m.stream.mu.Unlock()
	}
	return err
}

// settle carries out a settlement. A *Failure says that it was refused.
func (m *HandledMessage) settle(ctx context.Context, settle *SubscribeSettle, givesBack bool) error {
	if m.LockToken == nil {
		return &Failure{Reason: "INVALID_OPERATION", Message: "the message was removed before its handler began"} // RECV-3
	}
	settle.LockTokens = []string{m.token}
	err := m.persist(ctx, settle)
	var refused *Failure
	if err == nil || errors.As(err, &refused) && strings.HasSuffix(refused.GetReason(), "_LOCK_LOST") {
		m.stream.settled(m, givesBack)
	}
	return err
}

// conclude settles the message by what its handler returned.
func (m *HandledMessage) conclude(outcome error) error {
	m.stream.mu.Lock()
	isSettled := m.isSettled
	m.stream.mu.Unlock()
	hasEnded := m.ctx.Err() != nil
	ctx, cancel := m.stream.settling()
	defer cancel()
	var letter *DeadLetterError
	switch {
	case m.stream.isManual:
		return outcome
	case isSettled:
		return nil
	case outcome == nil:
		return m.Complete(ctx)
	case errors.As(outcome, &letter):
		reason, description := cutText(letter.Reason), cutText(letter.Description)
		return m.DeadLetter(ctx, &DeadLetterRequest{Reason: &reason, Description: &description})
	case hasEnded:
		return m.Release(ctx)
	default:
		return m.Abandon(ctx, nil)
	}
}
