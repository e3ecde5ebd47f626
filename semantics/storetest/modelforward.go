package storetest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// transferModel is what a run knows of what it forwards from main to other, step by step and in any order.
type transferModel struct {
	passages        []*passage                      // the last ones, most of them over
	onTheWay        map[semantics.SubQueue]*passage // those that are not
	undeliveredRows []*semantics.Received           // what the last look showed
}

// passage is one transfer, which both stores began at the same instant.
type passage struct {
	reference, subject semantics.Transfer
	publications       []semantics.Publication
}

const keptPassages = 6

func (p *passage) on(m *model, s semantics.Store) semantics.Transfer {
	if s == m.Subject {
		return p.subject
	}
	return p.reference
}

// forwardMain has the main queue forward, begins a transfer, and most often has it forward no more, or nothing could be
// received.
func (m *model) forwardMain(rt *rapid.T) {
	m.setForwarding(rt, "forwardTo", m.other.Path)
	m.begin(rt, m.main.Source)
	m.setForwarding(rt, "forwardTo", rapid.SampledFrom([]string{"", "", "", m.other.Path}).Draw(rt, "goes on"))
}

func (m *model) forwardDead(rt *rapid.T) {
	m.setForwarding(rt, "forwardDeadLetteredMessagesTo", m.other.Path)
	m.begin(rt, m.dead.Source)
	m.setForwarding(rt, "forwardDeadLetteredMessagesTo", rapid.SampledFrom([]string{"", m.other.Path}).Draw(rt, "goes on"))
}

func (m *model) setForwarding(rt *rapid.T, option, path string) {
	queue, _ := agree(rt, m, "forward", func(s semantics.Store) (semantics.Entity, error) {
		return s.UpdateEntity(m.ctx, semantics.QueueKind, m.main.Path, to(option, path), []string{option})
	})
	m.options = queue.Options
}

// beginMain begins what there is to forward, or finds that it does not forward.
func (m *model) beginMain(rt *rapid.T) { m.begin(rt, m.main.Source) }

func (m *model) begin(rt *rapid.T, source semantics.Source) {
	limit := rapid.IntRange(1, 4).Draw(rt, "limit")
	reference, subject, ok := both(rt, m, "begin transfer", func(s semantics.Store) (semantics.Transfer, error) {
		to, err := s.Destination(m.ctx, m.other.Path)
		if err != nil {
			return semantics.Transfer{}, err
		}
		return s.BeginTransfer(m.ctx, source, to, limit)
	})
	if !ok || len(reference.Messages)+len(subject.Messages) == 0 {
		m.looked(ok)
		return
	}
	same(rt, "transfer", plainTransfer(reference), plainTransfer(subject))
	if under := m.onTheWay[source.SubQueue]; under != nil {
		if under.reference.ID != reference.ID || under.subject.ID != subject.ID {
			rt.Fatalf("there are two transfers from %s at a time", source)
		}
		return
	}
	m.looked(ok)
	p := &passage{reference: reference, subject: subject}
	for _, row := range reference.Messages {
		message := row.Message
		message.Forwarded = &semantics.Forwarded{Hops: 1, EnqueuedSequenceNumber: row.EnqueuedSequenceNumber}
		if message.TimeToLive != nil && *message.TimeToLive <= 0 { // as the Broker does: its life was over when it came
			message.TimeToLive = nil
		}
		publication := semantics.Publication{Message: &message}
		if source.SubQueue == semantics.MainQueue {
			publication.ExpiresAt = row.ExpiresAt
		}
		p.publications = append(p.publications, publication)
	}
	m.onTheWay[source.SubQueue] = p
	m.passages = append(m.passages, p)
	m.passages = m.passages[max(0, len(m.passages)-keptPassages):]
}

// plainTransfer leaves out what stores may choose.
func plainTransfer(t semantics.Transfer) semantics.Transfer {
	t.ID, t.Seed, t.To.Incarnation, t.To.Path = "", "", 0, semantics.Fold(t.To.Path)
	t.Messages = slices.Clone(t.Messages)
	for i, message := range plain(t.Messages) {
		message.LockToken, message.LockedUntil = semantics.LockToken{}, time.Time{}
		t.Messages[i] = &message
	}
	return t
}

func (m *model) drawPassage(rt *rapid.T) *passage {
	if len(m.passages) == 0 {
		rt.Skip("nothing was forwarded yet")
	}
	return rapid.SampledFrom(m.passages).Draw(rt, "transfer")
}

// arrive runs the arrival of a transfer, perhaps again. The results of a transfer that was followed by another are not
// fixed.
func (m *model) arrive(rt *rapid.T) {
	p, isLast := m.drawPassage(rt), rapid.Bool().Draw(rt, "is last")
	m.compareCounts(rt, m.other.Path) // whether it is a look at the destination is not fixed
	reference, subject, _ := both(rt, m, "arrive", func(s semantics.Store) ([]semantics.Arrival, error) {
		return s.Arrive(m.ctx, p.on(m, s), 0, p.publications, isLast)
	})
	if p == m.lastFrom(p.reference.Source) {
		same(rt, "arrivals", reference, subject)
	}
	m.otherChanged = true
}

func (m *model) lastFrom(source semantics.Source) (last *passage) {
	for _, p := range m.passages {
		if p.reference.Source == source {
			last = p
		}
	}
	return last
}

func (m *model) endTransfer(rt *rapid.T) {
	p := m.drawPassage(rt)
	side := p.reference.Source.SubQueue
	fates := make([]semantics.Fate, len(p.publications))
	for i := range fates {
		switch kept := side == semantics.MainQueue; rapid.IntRange(1, 4).Draw(rt, "fate") {
		case 1:
			fates[i] = semantics.Fate{DeadLetter: &semantics.DeadLetterTexts{Reason: ptr("by hand"), Description: ptr("d")}, KeepsQueue: kept}
		case 2:
			fates[i].DeadLetter = &semantics.DeadLetterTexts{Reason: ptr("undelivered")}
		default: // it has arrived
		}
	}
	agree(rt, m, "end transfer", func(s semantics.Store) (any, error) {
		return nil, s.EndTransfer(m.ctx, p.on(m, s), fates)
	})
	if m.onTheWay[side] == p {
		delete(m.onTheWay, side)
	}
}

func (m *model) receiveUndelivered(rt *rapid.T) { m.take(rt, m.undelivered) }

// addTransfers counts what is set aside, which looks as if it was locked.
func (m *model) addTransfers(want *semantics.Runtime) {
	if p := m.onTheWay[semantics.MainQueue]; p != nil {
		want.Locked -= int64(len(p.publications))
		want.Transfer += int64(len(p.publications))
	}
	if p := m.onTheWay[semantics.DeadLetterQueue]; p != nil {
		want.DeadLetter -= int64(len(p.publications))
		want.Transfer += int64(len(p.publications))
	}
	want.TransferDeadLetter = int64(len(m.undeliveredRows))
}
