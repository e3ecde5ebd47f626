package client

import (
	"context"
	"errors"
	"time"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// settleFirstPause is the pause before a settlement is tried again for the first time.
const settleFirstPause = 10 * time.Millisecond

// handleSettleTimeout bounds waiting for a settlement once Handle is to end.
const handleSettleTimeout = 10 * time.Second

// settleWithRetries tries a settlement, with longer and longer pauses, until it succeeds or is refused for a reason
// that does not pass (ERR-3). Once the lock is known to be lost it tries a last time, to learn what became of the
// message.
func (m *HandledMessage) settleWithRetries(ctx context.Context, settle *sidebusv1.SubscribeSettle) error {
	mayBeDone := false // by a try of unknown outcome: then that the lock is lost means that it is done (ERR-6)
	for pause := settleFirstPause; ; pause = min(2*pause, handleLastPause) {
		isLast := m.isLost()
		err := m.stream.settle(ctx, settle)
		if err == nil {
			return nil
		}
		refused := ErrorOf(err)
		if mayBeDone && refused.Code == CodeMessageLockLost && !m.mayBelongToAnother() {
			return nil
		}
		if !refused.Retryable || isLast || errors.Is(err, errBroke) {
			return err
		}
		mayBeDone = mayBeDone || refused.OutcomeUnknown
		select {
		case <-time.After(max(pause, refused.RetryAfter)):
		case <-m.lost:
		case <-m.stream.ended:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// mayBelongToAnother reports whether a message that is to be removed before its handler begins may have lost its lock
// because that expired. Then another receiver may have it, and it must not be handled here too (RECV-3). In a session,
// only the lock of the session expires.
func (m *HandledMessage) mayBelongToAnother() bool {
	return m.stream.removes && m.session == nil && (m.LockedUntil == nil || time.Now().After(*m.LockedUntil))
}

func (m *HandledMessage) isLost() bool {
	select {
	case <-m.lost:
		return true
	default:
		return false
	}
}

// settlementContext returns the context of a settlement. It outlives that of Handle, but not for long.
func (h *handling) settlementContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	stop := context.AfterFunc(h.ctx, func() {
		select {
		case <-time.After(handleSettleTimeout):
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// settle tries a settlement once.
func (s *handleStream) settle(ctx context.Context, settle *sidebusv1.SubscribeSettle) error {
	response, err := s.requests.ask(
		ctx, &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: settle}},
	)
	if err != nil {
		return err
	}
	return settled(response.GetSettled().GetResults(), false)
}
