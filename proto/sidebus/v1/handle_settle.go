package sidebusv1

import (
	"context"
	"errors"
	"time"
)

// settleFirstPause is the pause before a settlement is tried again for the first time.
const settleFirstPause = 10 * time.Millisecond

// handleSettleTimeout bounds waiting for a settlement once Handle is to end.
const handleSettleTimeout = 10 * time.Second

// persist tries a settlement, with longer and longer pauses, until it is not refused for a reason that passes (ERR-3). Once the lock is
// known to be lost it tries a last time, to learn what became of the message.
func (m *HandledMessage) persist(ctx context.Context, settle *SubscribeSettle) error {
	mayBeDone := false // by a try of unknown outcome: then that the lock is lost means that it is done (ERR-6)
	for pause := settleFirstPause; ; pause = min(2*pause, handleLastPause) {
		isLast := m.isLost()
		err := m.stream.settle(ctx, settle)
		var refused *Failure
		if !errors.As(err, &refused) {
			return err
		}
		if mayBeDone && refused.GetReason() == "MESSAGE_LOCK_LOST" {
			return nil
		}
		if !refused.GetRetryable() || isLast {
			return err
		}
		mayBeDone = mayBeDone || refused.GetDetails()["outcome"] == "unknown"
		select {
		case <-time.After(max(pause, refused.GetRetryAfter().AsDuration())):
		case <-m.lost:
		case <-m.stream.ended:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

func (m *HandledMessage) isLost() bool {
	select {
	case <-m.lost:
		return true
	default:
		return false
	}
}

// settling gives the context of a settlement. It goes on when Handle is to end, but not for long.
func (h *handling) settling() (context.Context, context.CancelFunc) {
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

// settle tries a settlement once. A *Failure says that it was refused.
func (s *handleStream) settle(ctx context.Context, settle *SubscribeSettle) error {
	response, err := s.ask(ctx, &SubscribeRequest{Request: &SubscribeRequest_Settle{Settle: settle}})
	if err != nil {
		return err
	}
	for _, result := range response.GetSettled().GetResults() {
		if result.GetReason() != "" {
			return &Failure{Reason: result.GetReason(), Message: "the message was not settled"}
		}
	}
	return nil
}
