package storetest

import (
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// check compares all that can be seen without taking anything, and whether it fits together. After a time step it
// leaves the look to the next call, so that every verb gets to be the first to see what time has brought about.
func (m *model) check(rt *rapid.T) {
	m.audit(rt, m.main.Path)
	if m.moved {
		return
	}
	m.checks++
	r, _ := m.compareCounts(rt, m.main.Path) // before the queue, whose last use is known when what was due is done
	m.compareQueue(rt)
	rows, ok := m.comparePages(rt, m.main, semantics.ShowAll)
	dead, _ := m.comparePages(rt, m.dead, semantics.ShowAll)
	m.undeliveredRows, _ = m.comparePages(rt, m.undelivered, semantics.ShowAll)
	if ok {
		m.rows, m.deadRows = rows, dead
		m.checkSums(rt, r)
		m.checkSessions(rt)
		m.checkNumbers(rt, rows)
		m.checkNumbers(rt, dead)
		// One group after the other, one at each check.
		show := semantics.Show(1 << (m.checks % 4))
		m.checkGroup(rt, m.main, show, rows)
		m.checkGroup(rt, m.dead, show, dead)
	}
	if m.otherChanged {
		m.otherChanged = false
		m.audit(rt, m.other.Path)
		m.compareCounts(rt, m.other.Path)
		m.comparePages(rt, m.other, semantics.ShowAll)
	}
}

func (m *model) audit(rt *rapid.T, path string) {
	if m.Audit == nil {
		return
	}
	if err := m.Audit(path); err != nil {
		rt.Fatalf("what is kept of %s does not fit together:\n%v", path, err)
	}
}

func (m *model) compareQueue(rt *rapid.T) {
	agree(rt, m, "get", func(s semantics.Store) (semantics.Entity, error) {
		return s.GetEntity(m.ctx, semantics.QueueKind, m.main.Path)
	})
}

func (m *model) compareCounts(rt *rapid.T, path string) (semantics.Runtime, bool) {
	return agree(rt, m, "counts of "+path, func(s semantics.Store) (semantics.Runtime, error) {
		for range 100 { // a store may clear away what has expired in slices
			r, err := s.Runtime(m.ctx, semantics.QueueKind, path)
			if err != nil {
				return r, err
			}
			checkSum(rt, r)
			r.Partitions = nil // the reference has one
			if r.ExpiredPending == 0 {
				return r, nil
			}
		}
		rt.Fatalf("what has expired is never cleared away")
		return semantics.Runtime{}, nil
	})
}

func (m *model) comparePeek(rt *rapid.T, at origin, from int64, limit int, show semantics.Show) ([]*semantics.Received, bool) {
	reference, subject, ok := both(rt, m, "peek", func(s semantics.Store) ([]*semantics.Received, error) {
		return s.Peek(m.ctx, m.on(s, at), from, limit, show)
	})
	same(rt, "peek of "+at.String(), plain(reference), plain(subject))
	return reference, ok
}

// comparePages compares all rows, however many answers they take.
func (m *model) comparePages(rt *rapid.T, at origin, show semantics.Show) ([]*semantics.Received, bool) {
	reference, subject, ok := both(rt, m, "peek", func(s semantics.Store) (all []*semantics.Received, err error) {
		for from := int64(0); ; {
			rows, err := s.Peek(m.ctx, m.on(s, at), from, broker.MaxPeekMessages, show)
			all = append(all, rows...)
			if err != nil || len(rows) == 0 || len(rows) < broker.MaxPeekMessages/2 && sizeOf(rows) < semantics.MaxAnswerBytes/2 {
				return all, err
			}
			from = rows[len(rows)-1].SequenceNumber + 1
		}
	})
	same(rt, "peek of "+at.String(), plain(reference), plain(subject))
	return reference, ok
}

func sizeOf(rows []*semantics.Received) (sum int64) {
	for _, row := range rows {
		sum += row.Size
	}
	return sum
}

// plain leaves out what stores may choose: the tokens, and whether there is an encoded form. A wrong form shows.
func plain(messages []*semantics.Received) []semantics.Received {
	rows := make([]semantics.Received, len(messages))
	for i, message := range messages {
		row := *message
		if !row.LockToken.IsZero() {
			row.LockToken = semantics.LockToken{1}
		}
		if wrong := misencoded(message); wrong != "" {
			row.Subject = "Encoded differs: " + wrong
		}
		row.Encoded, row.Own = "", nil
		rows[i] = row
	}
	return rows
}

// misencoded returns how the encoded form of a message differs from the message.
func misencoded(r *semantics.Received) string {
	if r.Encoded == "" {
		return ""
	}
	said := semantics.Message{TimeToLive: r.TimeToLive, ScheduledAt: r.ScheduledAt, Forwarded: r.Forwarded}
	if !encoded.Decode([]byte(r.Encoded), &said) {
		return "it cannot be decoded"
	}
	return gocmp.Diff(r.Message, said, comparing)
}

// groupOf returns the group of a peeked row by its marks (PEEK-7).
func groupOf(row *semantics.Received) semantics.Show {
	switch {
	case row.Locked:
		return semantics.ShowLocked
	case row.State == semantics.Deferred:
		return semantics.ShowDeferred
	case row.State == semantics.Scheduled:
		return semantics.ShowScheduled
	default:
		return semantics.ShowAvailable
	}
}

// checkSums checks that the counts are those of what can be seen (CNT-1, CNT-4), and the size its sum.
func (m *model) checkSums(rt *rapid.T, r semantics.Runtime) {
	want := semantics.Runtime{DeadLetter: int64(len(m.deadRows)), OldestEnqueuedAt: r.OldestEnqueuedAt}
	for _, row := range m.rows {
		want.SizeInBytes += row.Size
		switch groupOf(row) {
		case semantics.ShowLocked:
			want.Locked++
		case semantics.ShowDeferred:
			want.Deferred++
		case semantics.ShowScheduled:
			want.Scheduled++
		default:
			want.Available++
			if !row.VisibleAt.IsZero() {
				want.Delayed++
			} else if want.AvailableSince.IsZero() || row.EnqueuedAt.Before(want.AvailableSince) {
				want.AvailableSince = row.EnqueuedAt
			}
		}
	}
	for _, row := range slices.Concat(m.deadRows, m.undeliveredRows) {
		want.SizeInBytes += row.Size
	}
	m.addTransfers(&want)
	want.Active = want.Available + want.Locked + want.Deferred
	m.addSessions(rt, &want, r)
	want.LastSequence = r.LastSequence // which both stores have, see compareCounts
	same(rt, "counts of what can be seen", want, r)
}

// checkNumbers checks that numbers rise strictly and name the same message for ever (MSG-5).
func (m *model) checkNumbers(rt *rapid.T, rows []*semantics.Received) {
	last := int64(0)
	for _, row := range rows {
		if row.SequenceNumber <= last {
			rt.Fatalf("number %d follows %d", row.SequenceNumber, last)
		}
		last = row.SequenceNumber
		if id, known := m.ids[last]; known && id != row.MessageID {
			rt.Fatalf("number %d was that of %q and is now that of %q", last, id, row.MessageID)
		}
		m.ids[last] = row.MessageID
		m.last = max(m.last, last)
		// To the properties of a dead letter peek adds the texts, which are none of its size.
		if row.DeadLetteredAt.IsZero() && row.Size != row.Message.Size() {
			rt.Fatalf("message %d says it has %d bytes, but has %d", last, row.Size, row.Message.Size())
		}
	}
}

// checkGroup checks that a peek of one group shows exactly those rows of all that are in it.
func (m *model) checkGroup(rt *rapid.T, at origin, show semantics.Show, rows []*semantics.Received) {
	got, ok := m.comparePages(rt, at, show)
	if !ok {
		return
	}
	var want []*semantics.Received
	for _, row := range rows {
		if groupOf(row) == show {
			want = append(want, row)
		}
	}
	same(rt, "peek of one group", numbersOf(want), numbersOf(got))
}
