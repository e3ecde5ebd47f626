package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// queue is a queue with its dead-letter queues. A subscription is one too; a topic is one of which only the scheduled
// messages and the history are used.
type queue struct {
	kind                             semantics.Kind
	name                             string
	incarnation                      int64 // distinguishes it from all others of the name
	options                          semantics.Options
	createdAt, updatedAt, accessedAt time.Time

	lastSequence int64
	main         box // in order of sequence number
	scheduled    box // as main; moves there when it is due
	dead         box // in order of arrival
	undelivered  box // the transfer dead-letter queue, as dead
	history      history
	requests     requests
	claims       claims

	transfers map[semantics.SubQueue]*transfer // under way, by where from
	arrived   map[semantics.Source]decision    // about the last transfer of each source that forwards to here

	// Only of a queue with sessions.
	sessions    map[string]*session // by id; those that have messages, a holder, state or a block
	idle        map[string]idle     // by id; those that have none of it any more
	lastVersion *int64              // of all states that the Store ever had
	stateBytes  int64

	// Only of the record of an entity with several partitions: the one that may complete, 0 for none.
	removal int64

	// Only of a topic.
	subscriptions map[string]*queue // by folded name
	routesVersion int64             // of its subscriptions, of their rules and of all else that decides about copies

	// Only of a subscription.
	topic *queue
	rules map[string]semantics.Rule // by folded name

	// due is the first instant at which time may change anything here. It may be early but never late, and only saves
	// sweeps that would find nothing. Zero: never.
	due time.Time
}

// box holds the messages of one source in the order in which they are handed out.
type box struct {
	messages []*message
	locks    map[semantics.LockToken]*message
	bytes    int64
}

func newQueue(kind semantics.Kind, name string, options semantics.Options, now time.Time) *queue {
	newBox := func() box { return box{locks: map[semantics.LockToken]*message{}} }
	return &queue{
		kind: kind, name: name, options: options, createdAt: now, updatedAt: now, accessedAt: now,
		main: newBox(), scheduled: newBox(), dead: newBox(), undelivered: newBox(), history: history{},
		transfers: map[semantics.SubQueue]*transfer{}, arrived: map[semantics.Source]decision{},
		sessions: map[string]*session{}, idle: map[string]idle{},
	}
}

func (q *queue) box(sub semantics.SubQueue) *box {
	switch sub {
	case semantics.DeadLetterQueue:
		return &q.dead
	case semantics.TransferDeadLetterQueue:
		return &q.undelivered
	default:
		return &q.main
	}
}

// next assigns a sequence number.
func (q *queue) next() int64 {
	q.lastSequence++
	return q.lastSequence
}

// bytes is the size of the queue with all it holds (DLQ-5, SCHED-2, SESS-33c), of a topic with all its subscriptions
// (TOPIC-7). What could not be forwarded is counted apart, with the same bound again.
func (q *queue) bytes() int64 {
	total := q.main.bytes + q.scheduled.bytes + q.dead.bytes + q.stateBytes
	for _, sub := range q.subscriptions {
		total += sub.bytes()
	}
	return total
}

func (q *queue) deadBytes() int64 {
	total := q.dead.bytes
	for _, sub := range q.subscriptions {
		total += sub.deadBytes()
	}
	return total
}

// bounded returns what has the limits of size that hold for q: the topic of a subscription, which all of them share
// (TOPIC-7), else itself.
func (q *queue) bounded() *queue {
	if q.topic != nil {
		return q.topic
	}
	return q
}

func (b *box) add(m *message) {
	m.in = b
	b.messages = append(b.messages, m)
	b.bytes += m.size
}

func (b *box) remove(m *message) {
	b.unlock(m)
	i := slices.Index(b.messages, m)
	b.messages = slices.Delete(b.messages, i, i+1)
	b.bytes -= m.size
	m.in = nil
}

func (b *box) lock(m *message, until time.Time) {
	m.token, m.lockedUntil = semantics.NewLockToken(), until
	b.locks[m.token] = m
}

func (b *box) unlock(m *message) {
	delete(b.locks, m.token)
	m.token, m.lockedUntil = semantics.LockToken{}, time.Time{}
}

// change returns a message other properties.
func (b *box) change(m *message, properties map[string]semantics.Value) {
	b.bytes -= m.size
	m.sent.Properties = properties
	m.size = m.sent.Size()
	b.bytes += m.size
}

// find returns the message with a sequence number, nil when there is none.
func (b *box) find(number int64) *message {
	for _, m := range b.messages {
		if m.sequence == number {
			return m
		}
	}
	return nil
}

// count is the number of messages for which is holds.
func (b *box) count(is func(m *message) bool) int {
	n := 0
	for _, m := range b.messages {
		if is(m) {
			n++
		}
	}
	return n
}

func (b *box) available() int { return b.count((*message).available) }

func byNumber(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) }

// expect notes that something will be due at an instant; zero is not an instant.
func (q *queue) expect(at time.Time) { q.due = earlier(q.due, at) }

func (q *queue) view() semantics.Entity {
	entity := semantics.Entity{
		Kind: q.kind, Name: q.name, Options: q.options,
		CreatedAt: q.createdAt, UpdatedAt: q.updatedAt, AccessedAt: q.accessedAt,
	}
	if q.options.Partitions > 1 || q.topic != nil && semantics.IsPartition(q.name) {
		entity.Incarnation = q.incarnation
	}
	return entity
}
