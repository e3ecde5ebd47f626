package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// heldSession is a session that a verb holds until it closes it.
type heldSession struct {
	*sidebusv1.Session

	o      *operator
	source string
	stop   context.CancelFunc // nil: the lock is not renewed
	ended  chan struct{}      // closed when renewing has ended
}

// accept takes the session with the id, or the one that has been ready longest for nil. It is nil when none is ready in
// time.
func (o *operator) accept(ctx context.Context, source string, id *string, wait time.Duration) (*heldSession, error) {
	answer, err := o.Sessions.Accept(
		ctx, &sidebusv1.SessionsAcceptRequest{Source: source, SessionId: id, MaxWait: durationpb.New(wait)},
	)
	if err != nil || answer.GetSession() == nil {
		return nil, err
	}
	return &heldSession{Session: answer.GetSession(), o: o, source: source}, nil
}

// renewalsPerLock is how often the lock is renewed in its time, so that one renewal may fail.
const renewalsPerLock = 3

// keep renews the lock until close, for work that may take longer than a lock. A renewal that fails is tried again;
// whether the lock is lost the next verb says.
func (h *heldSession) keep(ctx context.Context) error {
	lock, err := h.o.lockDuration(ctx, h.source)
	if err != nil {
		return err
	}
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx)) // unsettled messages are settled after a signal too
	h.ended = make(chan struct{})
	tick := time.NewTicker(lock / renewalsPerLock)
	go func() {
		defer close(h.ended)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = h.o.Sessions.RenewLock(
					ctx, &sidebusv1.SessionsRenewLockRequest{Source: h.source, LockToken: h.GetLockToken()},
				)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// close lets go of the session, also after a signal.
func (h *heldSession) close(ctx context.Context) error {
	if h.stop != nil {
		h.stop()
		<-h.ended
	}
	_, err := h.o.Sessions.Close(
		context.WithoutCancel(ctx), &sidebusv1.SessionsCloseRequest{Source: h.source, LockToken: h.GetLockToken()},
	)
	if err != nil {
		return fmt.Errorf(
			"%s could not be closed and is held until its lock expires: %w", ofSession(h.GetSessionId(), h.source), err,
		)
	}
	return nil
}

// holding lets work act on a session by name while no other client holds it.
func (o *operator) holding(
	ctx context.Context, source, id string, wait time.Duration, work func(*heldSession) error,
) error {
	held, err := o.accept(ctx, source, &id, wait)
	if err != nil {
		return err
	}
	if held == nil {
		return fmt.Errorf("%s could not be accepted", ofSession(id, source)) // no sidecar answers so
	}
	err = work(held)
	return errors.Join(err, held.close(ctx))
}
