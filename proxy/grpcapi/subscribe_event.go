package grpcapi

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
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

// responseFrom translates one event that is not a delivery.
func responseFrom(e stream.Event) *sidebusv1.SubscribeResponse {
	switch {
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

// Numbers of fields, each of the message before.
const (
	fieldDeliveries       protowire.Number = 3 // of sidebus.v1.SubscribeResponse
	fieldDelivery         protowire.Number = 1
	fieldSessionLockToken protowire.Number = 1
	fieldMessages         protowire.Number = 2
)

// deliveriesFrom encodes the response with deliveries, without the generated code.
func deliveriesFrom(events []stream.Event) (mem.Buffer, error) {
	size, isText := 0, true
	for _, e := range events {
		size += int(semantics.AnswerSize(e.Delivery.Messages))
	}
	buffer := answers.Get(size)
	*buffer = wire.AppendPart((*buffer)[:0], fieldDeliveries, size, func(b []byte) []byte {
		for _, e := range events {
			b = wire.AppendPart(b, fieldDelivery, size/len(events), func(b []byte) []byte {
				b, ok := appendDelivery(b, e.Delivery)
				isText = isText && ok
				return b
			})
		}
		return b
	})
	if !isText {
		return nil, semantics.Errorf(semantics.Internal, "a message has text that is not UTF-8")
	}
	return mem.NewBuffer(buffer, &answers), nil
}

// appendDelivery adds the fields of a sidebus.v1.SubscribeDelivery. It reports false if a text is not UTF-8.
func appendDelivery(b []byte, d *delivery.Delivery) (_ []byte, isText bool) {
	if lock := d.Source().SessionLock; !lock.IsZero() {
		b = protowire.AppendTag(b, fieldSessionLockToken, protowire.BytesType)
		b = protowire.AppendVarint(b, semantics.UUIDTextLength)
		b = lock.Append(b)
	}
	isText = true
	for _, m := range d.Messages {
		var ok bool
		b, ok = wire.AppendReceived(b, fieldMessages, m)
		isText = isText && ok
	}
	return b, isText
}
