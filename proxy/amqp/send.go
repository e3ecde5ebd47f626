package amqp

import (
	"context"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/semantics"
)

const (
	senderCredit = 1000
	// encoding is how much larger a message may be on the wire than Sidebus counts it (MSG-20), which refuses it then.
	encoding = 128 << 10
	// batchFormat is the message format of a transfer that has a message in each data section.
	batchFormat = 0x80013700
)

// sender is a link on which the client sends.
type sender struct {
	connection *connection
	target     semantics.Target
	work       worker[arrival]
}

// arrival is a message that a client sends, and how to note what became of it if it is in a transaction; nil if not.
type arrival struct {
	*engine.Message

	done func(err error)
}

// onMessage passes a message on, in the order in which the client has sent it.
func (s *sender) onMessage(m *engine.Message) { s.work.add(arrival{m, s.connection.arrived(m.State)}) }

// attachSender accepts a link to a queue or topic.
func (c *connection) attachSender(l *engine.Link, at node) *frame.Error {
	right := at.right(access.Send)
	if err := c.permit(right); err != nil {
		return linkError(err)
	}
	if at.sub.IsDeadLetters() {
		_, err := semantics.ToQueue(at.source().String()).Parse()
		return linkError(err)
	}
	target, err := semantics.ToQueue(at.path).Parse()
	if err != nil {
		return linkError(err)
	}
	entity, err := c.entity(l.Context(), at)
	if err != nil {
		return linkError(err)
	}
	target.IsTopic = entity.Kind == semantics.TopicKind
	s := &sender{connection: c, target: target}
	s.work.run, s.work.begin = s.send, c.begin
	largest := uint64(entity.Options.MaxMessageBytes())
	batch := uint64(semantics.SmallBatchSize)
	if largest > batch {
		batch = semantics.MaxBatchSize
	}
	_, stop := c.while(l, right)
	context.AfterFunc(l.Context(), stop)
	l.Accept(engine.Accepted{
		MaxMessageSize: largest, MaxTransfer: max(largest, batch) + encoding, Credit: senderCredit,
		OnMessage:  s.onMessage,
		Properties: codec.Map{codec.Named("com.microsoft:max-message-batch-size", batch)},
	})
	return nil
}

// send stores the messages of transfers. What has arrived together is stored together, each transfer on its own.
func (s *sender) send(transfers []arrival) {
	var ready []*engine.Message
	var calls [][]*semantics.Message
	for _, m := range transfers {
		messages, err := messagesOf(m.Message)
		state, isIn := m.State.(frame.Transactional)
		if isIn && err == nil {
			err = s.sendInTransaction(state, messages)
		}
		if isIn {
			m.done(err)
		}
		switch {
		case err != nil && isIn:
			m.Settle(frame.Rejected{Error: transactionError(err)})
		case err != nil:
			m.Settle(frame.Rejected{Error: linkError(err)})
		case isIn:
			m.Settle(frame.Transactional{ID: state.ID, Outcome: frame.Accepted{}})
		default:
			ready, calls = append(ready, m.Message), append(calls, messages)
		}
	}
	if len(ready) == 0 {
		return
	}
	server := s.connection.server
	var results [][]semantics.SendResult
	var errs []error
	err := s.connection.call(s.connection.ctx, "Messages.Send", s.target.Path, func(ctx context.Context) error {
		results, errs = server.Broker.SendEach(ctx, s.target, calls)
		for _, err := range errs {
			if err != nil && semantics.CodeOf(err) != semantics.NoMatchingSubscription {
				return err
			}
		}
		return nil
	})
	var accepted []*engine.Message
	for i, m := range ready {
		failed := err // of a panic
		if len(errs) > i {
			failed = errs[i]
		}
		switch {
		case semantics.CodeOf(failed) == semantics.NoMatchingSubscription: // which Service Bus does not have
			accepted = append(accepted, m)
		case failed != nil:
			m.Settle(frame.Rejected{Error: linkError(failed)})
		default:
			server.Metrics.Sent(s.target, calls[i], results[i])
			accepted = append(accepted, m)
		}
	}
	engine.SettleAll(accepted, frame.Accepted{})
}

// refusalOf returns why a message has no payload, nil if it has one. limit is 0 if that of the link is not known.
func refusalOf(m *engine.Message, what string, limit int64) error {
	switch {
	case m.IsRefused:
		return admission.RequestMemoryUsed()
	case m.IsTooLarge && limit > 0:
		return semantics.SizeExceeded(what, limit+1, limit)
	case m.IsTooLarge:
		return semantics.Errorf(semantics.MessageSizeExceeded, "the %s is larger than the link allows", what)
	default:
		return nil
	}
}

// messagesOf returns the messages of a transfer: one, or those of a batch.
func messagesOf(m *engine.Message) ([]*semantics.Message, error) {
	if err := refusalOf(m, "message", 0); err != nil {
		return nil, err
	}
	encoded := [][]byte{m.Payload}
	if m.Format == batchFormat {
		var err error
		if encoded, err = convert.Batch(m.Payload); err != nil {
			return nil, err
		}
	}
	messages := make([]*semantics.Message, len(encoded))
	for i, one := range encoded {
		var err error
		if messages[i], err = convert.Message(one); err != nil {
			return nil, err
		}
	}
	return messages, nil
}
