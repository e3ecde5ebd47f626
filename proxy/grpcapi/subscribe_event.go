package grpcapi

import (
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

var whys = map[stream.SessionEnd]sidebusv1.SubscribeSessionClosed_Why{
	stream.SessionIdle:    sidebusv1.SubscribeSessionClosed_IDLE,
	stream.SessionYielded: sidebusv1.SubscribeSessionClosed_YIELDED,
	stream.SessionClosed:  sidebusv1.SubscribeSessionClosed_CLOSED,
	stream.SessionLost:    sidebusv1.SubscribeSessionClosed_LOST,
	stream.SessionDrained: sidebusv1.SubscribeSessionClosed_DRAINING,
	stream.SessionPaused:  sidebusv1.SubscribeSessionClosed_PAUSED,
}

// responseFrom translates one event, or several deliveries.
func responseFrom(events []stream.Event) *sidebusv1.SubscribeResponse {
	e := events[0]
	switch {
	case e.Delivery != nil:
		return &sidebusv1.SubscribeResponse{
			Response: &sidebusv1.SubscribeResponse_Deliveries{Deliveries: deliveriesFrom(events)},
		}
	case e.SessionOpened != nil:
		return &sidebusv1.SubscribeResponse{
			Response: &sidebusv1.SubscribeResponse_SessionOpened{SessionOpened: sessionFrom(e.SessionOpened)},
		}
	case e.SessionClosed != nil:
		closed := &sidebusv1.SubscribeSessionClosed{
			SessionId: e.SessionClosed.ID, SessionLockToken: e.SessionClosed.Lock.String(),
			Why: whys[e.SessionClosed.Why],
		}
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionClosed{SessionClosed: closed}}
	case e.LocksLost != nil:
		lost := &sidebusv1.SubscribeLocksLost{LockTokens: make([]string, len(e.LocksLost))}
		for i, token := range e.LocksLost {
			lost.LockTokens[i] = token.String()
		}
		return &sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_LocksLost{LocksLost: lost}}
	default:
		return &sidebusv1.SubscribeResponse{
			Response: &sidebusv1.SubscribeResponse_Failure{Failure: failureFrom(e.Failure)},
		}
	}
}

func deliveriesFrom(events []stream.Event) *sidebusv1.SubscribeDeliveries {
	all := &sidebusv1.SubscribeDeliveries{Deliveries: make([]*sidebusv1.SubscribeDelivery, len(events))}
	for i, e := range events {
		all.Deliveries[i] = &sidebusv1.SubscribeDelivery{Messages: wire.EncodedFrom(e.Delivery.Messages)}
		if lock := e.Delivery.Source().SessionLock; !lock.IsZero() {
			all.Deliveries[i].SessionLockToken = lock.String()
		}
	}
	return all
}
