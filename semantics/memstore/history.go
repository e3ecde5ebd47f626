package memstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// history is what duplicate detection remembers: by key, the message first accepted with it (DUP-1).
type history map[string]remembered

type remembered struct {
	number     int64 // which the message had when it was accepted
	acceptedAt time.Time
}

// duplicateKey is what makes two messages the same: the message id, in a partitioned queue with the partition (DUP-2).
func (q *queue) duplicateKey(m *semantics.Message) string {
	if !q.options.EnablePartitioning {
		return strings.Clone(m.MessageID)
	}
	p := m.Partition()
	return strconv.Itoa(len(p)) + ":" + p + m.MessageID
}

// duplicateOf reports whether a message was accepted already, and returns its number. From the very end of the window
// on it is new (DUP-4).
func (q *queue) duplicateOf(m *semantics.Message, now time.Time) (number int64, is bool) {
	if !q.options.RequiresDuplicateDetection {
		return 0, false
	}
	q.forget(now)
	entry, is := q.history[q.duplicateKey(m)]
	return entry.number, is && !q.claims.forgotten[entry.number]
}

// remember notes the acceptance of a message under a number.
func (q *queue) remember(m *semantics.Message, number int64, now time.Time) {
	if q.options.RequiresDuplicateDetection {
		q.history[q.duplicateKey(m)] = remembered{number, now}
	}
}

// forget removes what the window, as it is now, no longer covers. Only a cancel with ForgetOnCancel removes more
// (DUP-5).
func (q *queue) forget(now time.Time) {
	for key, entry := range q.history {
		if !now.Before(entry.acceptedAt.Add(q.options.DuplicateDetectionHistoryTimeWindow)) {
			delete(q.history, key)
		}
	}
}

// forgetCancelled makes the id of a cancelled message new again, if it was this one that was accepted with it (DUP-6).
func (q *queue) forgetCancelled(m *message) {
	key := q.duplicateKey(&m.sent)
	if q.options.ForgetOnCancel && q.history[key].number == m.sequence {
		delete(q.history, key)
	}
}
