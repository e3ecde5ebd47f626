package faults

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// ledger is what the applications know of every message. It takes some 30 bytes for each, so that a run can send
// millions.
type ledger struct {
	began     time.Time
	forgetful bool // Redis may lose what it acknowledged; then losses and doubles are counted, not faults

	mu       sync.Mutex
	books    [targets][]*book // by sender
	sessions map[string]*session
	drained  map[uint16]bool // sidecars, which gave back what they had handed out
	faults   []string
	found    int // faults, the ones not kept too
	told     int // of those that are kept

	acked, delivered, completed, again, stale int // copies
}

// target is what messages are sent to.
type target uint8

const (
	orders target = iota // a queue
	chats                // a queue with sessions
	news                 // a topic with two subscriptions
	spread               // a queue with several partitions
	targets
)

// copiesOf is how many places a message of a target comes to.
func copiesOf(t target) int {
	if t == news {
		return len(subscriptions)
	}
	return 1
}

// book is what one sender has sent to one target, by number.
type book struct {
	sent []fate
	at   []instant // when it was acknowledged
	key  []uint8   // which of the sender's partition keys it has, zero: none
	seen [][]seen  // by place
}

// fate is what a sender knows of a message.
type fate uint8

const (
	open    fate = iota // it may be stored, or may be yet
	stored              // it was acknowledged
	refused             // it is certainly not stored
)

// instant counts milliseconds from the beginning of the run on; zero: never.
type instant uint32

// seen is a message in one of its places.
type seen struct {
	number    int64   // its sequence number, zero: it was never delivered
	answered  instant // when the last receive of it returned
	until     instant // when the lock of that ends at the earliest, zero: it may have ended before
	completed instant // when a completion returned
	by        uint16  // the sidecar that handed it out last
}

// id names a message; its text is its body's beginning and its message id.
type id struct {
	to     target
	sender int
	number int
}

func (i id) String() string { return fmt.Sprintf("%d.%d.%d", i.to, i.sender, i.number) }

func parse(text string) (i id, err error) {
	_, err = fmt.Sscanf(text, "%d.%d.%d", &i.to, &i.sender, &i.number)
	return i, err
}

// session is who holds a session, and how far it has come.
type session struct {
	token    string
	accepted time.Time // when the accept of it returned
	until    time.Time // when the lock ends at the earliest
	by       []uint16  // the sidecars through which it was used, which end it when they drain
	isOver   bool      // its holder may have closed it
	last     int       // number of the message that was delivered last for the first time
}

func newLedger(forgetful bool) *ledger {
	return &ledger{began: time.Now().Add(-time.Second), forgetful: forgetful, sessions: map[string]*session{}, drained: map[uint16]bool{}}
}

func (l *ledger) instant(at time.Time) instant { return instant(at.Sub(l.began).Milliseconds()) }

// fault notes something that may never be. Of very many it keeps the first.
func (l *ledger) fault(format string, args ...any) {
	l.found++
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf("after %s: ", time.Since(l.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

// draft gives the names of some new messages.
func (l *ledger) draft(to target, sender, count int) []id {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.books[to]) <= sender {
		l.books[to] = append(l.books[to], &book{seen: make([][]seen, copiesOf(to))})
	}
	b, ids := l.books[to][sender], make([]id, count)
	for i := range ids {
		ids[i] = id{to, sender, len(b.sent)}
		b.sent, b.at, b.key = append(b.sent, open), append(b.at, 0), append(b.key, 0)
		for place := range b.seen {
			b.seen[place] = append(b.seen[place], seen{})
		}
	}
	return ids
}

// keyed notes that messages are sent with one of the sender's partition keys.
func (l *ledger) keyed(ids []id, key uint8) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range ids {
		l.books[i.to][i.sender].key[i.number] = key
	}
}

// sentAs notes the outcome of the call that sent some messages.
func (l *ledger) sentAs(ids []id, got outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range ids {
		b := l.books[i.to][i.sender]
		switch got {
		case done:
			b.sent[i.number], b.at[i.number] = stored, l.instant(time.Now())
			l.acked += copiesOf(i.to)
		case failed, lockLost, gone:
			b.sent[i.number] = refused
			for _, places := range b.seen {
				if places[i.number].number != 0 {
					l.fault("%s was delivered, and its send failed", i)
				}
			}
		case unknown:
		}
	}
}

// delivery is one message in the answer of a receive.
type delivery struct {
	id           id
	place        int // which of the places of its target
	session      string
	number       int64
	began, ended time.Time // of the receive
	until        time.Time // of the lock
	by           uint16    // the sidecar
}

// receive notes a delivery.
func (l *ledger) receive(d delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(d.id.to) >= len(l.books) || d.id.sender >= len(l.books[d.id.to]) || d.id.number >= len(l.books[d.id.to][d.id.sender].sent) {
		l.fault("%s was delivered, and nobody sent it", d.id)
		return
	}
	b := l.books[d.id.to][d.id.sender]
	s := &b.seen[d.place][d.id.number]
	isFirst := s.number == 0
	began, ended := l.instant(d.began), l.instant(d.ended)
	l.delivered++
	if !isFirst {
		l.again++
	}
	switch {
	case b.sent[d.id.number] == refused:
		l.fault("%s was delivered, and its send failed", d.id)
	case l.forgetful:
	case !isFirst && s.number != d.number:
		l.fault("%s is two messages, %d and %d", d.id, s.number, d.number)
	case s.completed > 0 && began > s.completed:
		l.fault("%s came again %d ms after it was completed", d.id, began-s.completed)
	case d.session == "" && s.until > ended && began > s.answered && !l.drained[s.by]:
		l.fault("%s has two holders: its lock lasts for %d ms more", d.id, s.until-ended)
	}
	if isFirst && d.session != "" {
		l.inOrder(d)
	}
	s.number, s.answered, s.until, s.by = d.number, ended, l.instant(d.until), d.by
}

// inOrder checks the first delivery of a message of a session. Senders number the messages of a session upwards.
func (l *ledger) inOrder(d delivery) {
	s := l.sessions[d.session]
	if s == nil {
		l.fault("%s was delivered in session %s, which nobody holds", d.id, d.session)
		return
	}
	if d.id.number < s.last && !l.forgetful {
		l.fault("%s came after number %d of its session", d.id, s.last)
	}
	s.last = max(s.last, d.id.number)
}

// settling notes that a call begins which may end the lock of a message.
func (l *ledger) settling(i id, place int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.books[i.to][i.sender].seen[place][i.number].until = 0
}

// complete notes that a message was completed.
func (l *ledger) complete(i id, place int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.books[i.to][i.sender].seen[place][i.number]
	if s.completed == 0 {
		s.completed = l.instant(time.Now())
		l.completed++
	}
}

// settledLate notes that a message was settled by a lock that had ended.
func (l *ledger) settledLate(i id, ago time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault("%s was settled by a lock that had ended %s before", i, ago)
}

// refusedLate counts settlements that were refused because their lock had ended.
func (l *ledger) refusedLate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale++
}

// accept notes who holds a session now.
func (l *ledger) accept(name, token string, by uint16, began, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s := l.sessions[name]
	if s == nil {
		s = &session{last: -1}
		l.sessions[name] = s
	}
	if l.isHeld(s) && began.After(s.accepted) && now.Before(s.until) {
		l.fault("session %s has two holders: the lock of the first lasts for %s more", name, s.until.Sub(now))
	}
	s.token, s.accepted, s.until, s.by, s.isOver = token, now, until, []uint16{by}, false
}

// isHeld reports whether nothing but its end may have ended the lock of a session.
func (l *ledger) isHeld(s *session) bool {
	return !l.forgetful && s.token != "" && !s.isOver && !slices.ContainsFunc(s.by, func(by uint16) bool { return l.drained[by] })
}

// draining notes that a sidecar begins to give back what it has handed out.
func (l *ledger) draining(sidecar uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drained[sidecar] = true
}

// use notes that a session is used through a sidecar.
func (l *ledger) use(name, token string, by uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[name]; s.token == token {
		s.by = append(s.by, by)
	}
}

// renewed notes that the holder of a session has it for longer.
func (l *ledger) renewed(name, token string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[name]; s.token == token {
		s.until = until
	}
}

// closing notes that a call begins which may end the lock of a session.
func (l *ledger) closing(name, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[name]; s.token == token {
		s.isOver = true
	}
}

// lost notes that the holder of a session was told that its lock is lost.
func (l *ledger) lost(name, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[name]; s.token == token && l.isHeld(s) && time.Now().Before(s.until) {
		l.fault("session %s is lost to its holder, whose lock lasts for %s more", name, time.Until(s.until))
	}
}

// unexpected notes a failure that no fault explains.
func (l *ledger) unexpected(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault("%s: %v", what, err)
}
