package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// SessionReceiverOptions changes how a session is accepted and received.
type SessionReceiverOptions struct {
	// ReceiveMode says what receiving does to a message.
	ReceiveMode ReceiveMode
	// MaxWait is how long to wait, at least 0. For the next session, nil is until the context ends. For a session that
	// is named and held by another receiver, nil is 0: it fails at once.
	MaxWait *time.Duration
	// MaxAutoRenew is how long the lock of the session is renewed in the background after it was accepted. 0: not at
	// all.
	MaxAutoRenew time.Duration
}

// SessionReceiver holds one session of a queue or subscription: its messages come in order, and to this receiver alone.
// All methods may be called concurrently. What it shares with [Receiver] works in the same way. When the lock of the
// session is lost, every method fails with [CodeSessionLockLost]: accept the session again.
type SessionReceiver struct {
	receiver

	id string

	stateMu sync.Mutex
	until   time.Time
}

// AcceptSessionForQueue takes the lock of the session with this id, which need not have a message. If another receiver
// holds it, it waits as options say, and then fails with [CodeSessionCannotBeLocked]. options may be nil. Close the
// receiver when you are done.
//
// Errors: [CodeEntityNotFound]; [CodeSessionNotSupported] if the queue has no sessions; [CodeInvalidArgument] for an id
// that is empty or has more than 128 UTF-16 units.
func (c *Client) AcceptSessionForQueue(
	ctx context.Context, queue, sessionID string, options *SessionReceiverOptions,
) (*SessionReceiver, error) {
	return c.accept(ctx, queueSource(queue), &sessionID, options)
}

// AcceptSessionForSubscription is AcceptSessionForQueue for a subscription of a topic.
func (c *Client) AcceptSessionForSubscription(
	ctx context.Context, topic, subscription, sessionID string, options *SessionReceiverOptions,
) (*SessionReceiver, error) {
	return c.accept(ctx, subscriptionSource(topic, subscription), &sessionID, options)
}

// AcceptNextSessionForQueue takes the lock of the session that has had an available message for longest while no
// receiver held it. It blocks until there is one or ctx ends, and with MaxWait fails with [CodeServiceTimeout] after
// that. options may be nil. Close the receiver when you are done. Errors as of AcceptSessionForQueue, and
// [CodeInvalidOperation] if the queue forbids this.
func (c *Client) AcceptNextSessionForQueue(
	ctx context.Context, queue string, options *SessionReceiverOptions,
) (*SessionReceiver, error) {
	return c.accept(ctx, queueSource(queue), nil, options)
}

// AcceptNextSessionForSubscription is AcceptNextSessionForQueue for a subscription of a topic.
func (c *Client) AcceptNextSessionForSubscription(
	ctx context.Context, topic, subscription string, options *SessionReceiverOptions,
) (*SessionReceiver, error) {
	return c.accept(ctx, subscriptionSource(topic, subscription), nil, options)
}

func (c *Client) accept(
	ctx context.Context, source string, id *string, options *SessionReceiverOptions,
) (*SessionReceiver, error) {
	if options == nil {
		options = &SessionReceiverOptions{}
	}
	life, err := c.newLifetime()
	if err != nil {
		return nil, err
	}
	wait := options.MaxWait
	if id != nil && wait == nil {
		wait = new(time.Duration)
	}
	var session *sidebusv1.Session
	began := time.Now()
	err = life.await(ctx, wait, longestWait, func(ctx context.Context, each time.Duration) (bool, error) {
		response, err := c.sessions.Accept(ctx, &sidebusv1.SessionsAcceptRequest{
			Source: source, SessionId: id, MaxWait: durationpb.New(each),
		})
		session = response.GetSession()
		if err != nil && id != nil && ErrorOf(err).Code == CodeSessionCannotBeLocked && time.Since(began) < *wait {
			return false, nil // one call waits for a minute at most
		}
		return session != nil, err
	})
	if err == nil && session == nil {
		err = &Error{
			Code:      CodeServiceTimeout,
			Message:   "no session became ready within " + wait.String(),
			Retryable: true,
		}
	}
	if err != nil {
		life.close()
		return nil, err
	}
	token := session.GetLockToken()
	r := &SessionReceiver{
		receiver: receiver{life: life, source: source, mode: options.ReceiveMode.wire(), session: &token},
		id:       session.GetSessionId(), until: session.GetLockedUntil().AsTime(),
	}
	if options.MaxAutoRenew > 0 {
		newRenewals(life, options.MaxAutoRenew, r.renew).addLock(token, r.until)
	}
	return r, nil
}

// SessionID returns the id of the session.
func (r *SessionReceiver) SessionID() string { return r.id }

// LockedUntil returns when the lock of the session expires, by the clock of Redis, as far as is known here.
func (r *SessionReceiver) LockedUntil() time.Time {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	return r.until
}

// RenewSessionLockOptions is for options to come.
type RenewSessionLockOptions struct{}

// RenewSessionLock makes the lock of the session, and those of its messages, last for the queue's lockDuration from
// now, as often as you like. options may be nil.
func (r *SessionReceiver) RenewSessionLock(ctx context.Context, _ *RenewSessionLockOptions) error {
	var response *sidebusv1.SessionsRenewLockResponse
	err := r.life.call(ctx, repeatable, func(ctx context.Context, _ bool) (err error) {
		response, err = r.life.client.sessions.RenewLock(
			ctx, &sidebusv1.SessionsRenewLockRequest{Source: r.source, LockToken: *r.session},
		)
		return err
	})
	if err == nil {
		r.stateMu.Lock()
		defer r.stateMu.Unlock()
		r.until = response.GetLockedUntil().AsTime()
	}
	return err
}

// renew renews the one lock of the session for renewals.
func (r *SessionReceiver) renew(ctx context.Context, tokens []string) (map[string]time.Time, error) {
	err := r.RenewSessionLock(ctx, nil)
	switch {
	case errors.Is(err, CodeSessionLockLost):
		return nil, nil //nolint:nilnil // it holds no longer
	case err != nil:
		return nil, err
	}
	return map[string]time.Time{tokens[0]: r.LockedUntil()}, nil
}

// GetSessionStateOptions is for options to come.
type GetSessionStateOptions struct{}

// GetSessionState returns the state that is kept with the session: nil when there is none; an empty one is not nil.
// options may be nil.
func (r *SessionReceiver) GetSessionState(ctx context.Context, _ *GetSessionStateOptions) ([]byte, error) {
	var response *sidebusv1.SessionsGetStateResponse
	err := r.life.call(ctx, repeatable, func(ctx context.Context, _ bool) (err error) {
		response, err = r.life.client.sessions.GetState(
			ctx, &sidebusv1.SessionsGetStateRequest{Source: r.source, LockToken: *r.session},
		)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response.State, nil //nolint:protogetter // nil and empty differ (SESS-33)
}

// SetSessionStateOptions is for options to come.
type SetSessionStateOptions struct{}

// SetSessionState replaces the state that is kept with the session; nil clears it. It may have as many bytes as a
// message of the queue, else it fails with [CodeSessionStateTooLarge]. [CodeEntityFull] and [CodeQuotaExceeded]: the
// queue has no space for it. options may be nil.
func (r *SessionReceiver) SetSessionState(ctx context.Context, state []byte, _ *SetSessionStateOptions) error {
	return r.life.call(ctx, repeatable, func(ctx context.Context, _ bool) error {
		_, err := r.life.client.sessions.SetState(ctx, &sidebusv1.SessionsSetStateRequest{
			Source: r.source, LockToken: *r.session, State: state,
		})
		return err
	})
}

// Close closes the session: messages that were not settled are available again at once and nothing is counted; the
// state stays. Later calls fail with [CodeClosed]. It returns no error for a session that was lost or a receiver that
// was closed before. If ctx has ended the session stays locked until its lock expires, so do not pass the context that
// ended your work.
func (r *SessionReceiver) Close(ctx context.Context) error {
	err := r.life.call(ctx, repeatable, func(ctx context.Context, _ bool) error {
		_, err := r.life.client.sessions.Close(
			ctx, &sidebusv1.SessionsCloseRequest{Source: r.source, LockToken: *r.session},
		)
		return err
	})
	r.life.close()
	if errors.Is(err, CodeSessionLockLost) || errors.Is(err, CodeClosed) {
		return nil
	}
	return err
}
