package engine

import (
	"slices"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// Message is a message that the client sends.
type Message struct {
	Format  uint32
	Payload []byte
	// IsTooLarge: it has more than MaxTransfer bytes, and no Payload.
	IsTooLarge bool
	// IsRefused: there was no memory for it, and it has no Payload.
	IsRefused bool
	// State is that of the delivery, which is nil except in transactions.
	State frame.State

	link      *Link
	memory    Memory
	held      int // bytes that count for the connection
	id        uint32
	isSettled bool // by the client: it wants no answer
}

// transfer takes over a transfer. after passes a message that is complete to the Service.
func (s *session) transfer(t *frame.Transfer, f frame.Frame) (after func(), err error) {
	if err := s.arrived(); err != nil {
		return nil, err
	}
	l, err := s.link(t.Handle)
	if err != nil {
		return nil, err
	}
	switch {
	case l.isClosed:
		s.conn.dropped(t.State)
		return nil, nil // the client will learn that
	case l.IsToClient:
		return nil, violation(errantLink, "a transfer on a link on which the client receives")
	case l.accepted == nil:
		return nil, violation(errantLink, "a transfer before the link is attached")
	}
	if l.partial == nil {
		if t.DeliveryID == nil {
			return nil, violation(invalidField, "the first transfer of a delivery needs delivery-id")
		}
		if l.credit == 0 {
			l.close(&frame.Error{Condition: transferLimit, Description: "the credit of the link is used up"})
			s.conn.dropped(t.State)
			return nil, nil
		}
		l.credit--
		l.deliveryCount++
		l.partial = &Message{
			link: l, memory: s.conn.config.Memory(), id: *t.DeliveryID, isSettled: t.Settled, State: t.State,
			held: messageBytes + f.Size,
		}
		s.conn.partial += l.partial.held
		if t.MessageFormat != nil {
			l.partial.Format = *t.MessageFormat
		}
	}
	m := l.partial
	if t.DeliveryID != nil && *t.DeliveryID != m.id {
		return nil, violation(invalidField, "a delivery begins within another one of the link")
	}
	m.isSettled = m.isSettled || t.Settled
	if err := l.add(m, f.Payload); err != nil || t.More && !t.Aborted {
		return nil, err
	}
	l.partial = nil
	s.conn.partial -= m.held
	if t.Aborted {
		m.memory.Free()
		l.topUp()
		return nil, nil
	}
	l.open++
	s.conn.queued += m.held
	onMessage := l.accepted.OnMessage
	return func() { onMessage(m) }, nil
}

// add adds a part of a message.
func (l *Link) add(m *Message, payload []byte) error {
	c := l.session.conn
	switch {
	case m.IsTooLarge, m.IsRefused:
		return nil // the rest is only counted
	case uint64(len(m.Payload)+len(payload)) > l.accepted.MaxTransfer:
		m.IsTooLarge = true
		m.discard()
		return nil
	case c.partial-m.held > maxPartial:
		return violation(limitExceeded, "too many large messages at a time; send one after the other")
	}
	if !m.memory.Grow(len(payload)) {
		m.IsRefused = true
		m.discard()
		return nil
	}
	m.Payload = append(m.Payload, payload...)
	m.held += len(payload)
	c.partial += len(payload)
	return nil
}

// discard forgets what has arrived of a message that is going to be refused.
func (m *Message) discard() {
	m.link.session.conn.partial -= len(m.Payload)
	m.held -= len(m.Payload)
	m.Payload = nil
	m.memory.Free()
}

// dropped reports what the Service does not get, under the mutex.
func (c *Conn) dropped(state frame.State) {
	if state != nil {
		c.config.Dropped(state)
	}
}

// Settle settles the message with a state. Each message is settled once.
func (m *Message) Settle(state frame.State) { SettleAll([]*Message{m}, state) }

// SettleAll is Settle for messages of one link. Neighbours are answered together.
func SettleAll(all []*Message, state frame.State) {
	if len(all) == 0 {
		return
	}
	l := all[0].link
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range all {
		c.queued -= m.held
		m.Payload = nil
		m.memory.Free()
	}
	c.settled.fire()
	l.open -= uint32(len(all))
	if l.isOver || l.isClosed {
		return
	}
	all = slices.DeleteFunc(all, func(m *Message) bool { return m.isSettled })
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].id == all[n-1].id+1 {
			n++
		}
		l.session.send(&frame.Disposition{
			IsReceiver: true, First: all[0].id, Last: all[n-1].id, Settled: true, State: state,
		})
		all = all[n:]
	}
	l.topUp()
}

// topUp restores the credit of the client when half of it is used.
func (l *Link) topUp() {
	if most := l.accepted.Credit; l.credit < (most+1)/2 && l.credit+l.open < most {
		l.credit = most - l.open
		l.session.sendFlow(l)
	}
}
