package storetest

import (
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

func (m *model) receive(rt *rapid.T)     { m.take(rt, m.drawMain(rt)) }
func (m *model) receiveDead(rt *rapid.T) { m.take(rt, m.dead) }

func (m *model) receiveOther(rt *rapid.T) {
	if m.otherHasSessions {
		m.visitOther(rt)
		return
	}
	moved := m.moved
	m.take(rt, m.other)
	m.moved = moved // of main nothing was seen
}

func (m *model) take(rt *rapid.T, from origin) {
	limit := few(rt, mostModelReceive, "limit")
	reference, subject, ok := both(rt, m, "receive", func(s semantics.Store) ([]*semantics.Received, error) {
		for {
			batch, err := s.Receive(m.ctx, m.on(s, from), limit, semantics.RegisterNever)
			if err != nil || len(batch.Messages) > 0 || batch.RecheckAfter > 0 {
				return batch.Messages, err
			}
		}
	})
	m.took(rt, from, reference, subject, true)
	m.looked(ok)
}

// took compares what was handed out, in its turn or by number, and keeps the tokens.
func (m *model) took(rt *rapid.T, from origin, reference, subject []*semantics.Received, inTurn bool) {
	same(rt, "received", plain(reference), plain(subject))
	m.handedOut(rt, from, reference, inTurn)
	for i, r := range reference {
		m.deliveries = append(m.deliveries, received{from, r.SequenceNumber, r.LockToken, subject[i].LockToken})
	}
	m.deliveries = m.deliveries[max(0, len(m.deliveries)-keptDeliveries):]
}

func (m *model) drawSide(rt *rapid.T) (from origin, rows []*semantics.Received) {
	if rapid.IntRange(1, 3).Draw(rt, "side") == 1 {
		return m.dead, m.deadRows
	}
	return m.drawMain(rt), m.rows
}

func isDeferred(row *semantics.Received) bool {
	return row.State == semantics.Deferred && !row.Locked
}
func isAvailable(row *semantics.Received) bool { return groupOf(row) == semantics.ShowAvailable }

func (m *model) receiveDeferred(rt *rapid.T) { m.takeNumbers(rt, semantics.Deferred, isDeferred) }
func (m *model) receiveByNumber(rt *rapid.T) { m.takeNumbers(rt, semantics.Active, isAvailable) }

func (m *model) takeNumbers(rt *rapid.T, state semantics.State, meant func(row *semantics.Received) bool) {
	from, rows := m.drawSide(rt)
	numbers := m.numbers(rt, rows, broker.MaxDeferredNumbers, m.ofSession(rt, from, meant))
	reference, subject, ok := both(rt, m, "receive by number", func(s semantics.Store) ([]*semantics.Received, error) {
		return s.ReceiveByNumber(m.ctx, m.on(s, from), state, numbers)
	})
	m.took(rt, from, reference, subject, false)
	m.looked(ok)
}

func (m *model) reactivate(rt *rapid.T) {
	from, rows := m.drawSide(rt)
	numbers := m.numbers(rt, rows, broker.MaxDeferredNumbers, isDeferred)
	_, ok := agree(rt, m, "reactivate", func(s semantics.Store) (any, error) {
		return nil, s.Reactivate(m.ctx, m.on(s, from), numbers)
	})
	m.noLongerDeferred(ok, numbers...)
	m.looked(ok)
}

func (m *model) peek(rt *rapid.T) {
	at, _ := m.drawSide(rt)
	from := rapid.Int64Range(0, m.last+1).Draw(rt, "from")
	limit := rapid.IntRange(1, 5).Draw(rt, "limit")
	show := semantics.Show(rapid.IntRange(1, int(semantics.ShowAll)).Draw(rt, "show"))
	_, ok := m.comparePeek(rt, at, from, limit, show)
	m.looked(ok)
}
