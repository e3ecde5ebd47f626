package semantics

import "strings"

// SubQueue names one of the queues that lie below a source (ENT-1).
type SubQueue uint8

// The sub-queues.
const (
	MainQueue SubQueue = iota
	DeadLetterQueue
	TransferDeadLetterQueue // what could not be forwarded (DLQ-13)
)

// IsDeadLetters reports whether it is one of the two that hold dead letters, which take no sends and which no message
// leaves automatically (DLQ-3, DLQ-4).
func (q SubQueue) IsDeadLetters() bool { return q != MainQueue }

// String returns the name of the sub-queue as the API writes it.
func (q SubQueue) String() string {
	switch q {
	case DeadLetterQueue:
		return "DEAD_LETTER"
	case TransferDeadLetterQueue:
		return "TRANSFER_DEAD_LETTER"
	default:
		return "NONE"
	}
}

// Target is something one can send to: a queue or a topic. Path must come from ParsePath.
type Target struct {
	Path    string
	IsTopic bool
}

// ToQueue is the target of a queue.
func ToQueue(path string) Target { return Target{Path: path} }

// ToTopic is the target of a topic.
func ToTopic(path string) Target { return Target{Path: path, IsTopic: true} }

// Parse checks the path of a target, and returns it as ParsePath does. INVALID_ARGUMENT; INVALID_OPERATION for what
// takes no sends.
func (t Target) Parse() (Target, error) {
	t.Path = strings.ReplaceAll(t.Path, `\`, "/")
	if sub := subQueueOf(t.Path); sub.IsDeadLetters() {
		return t, Errorf(InvalidOperation, "cannot send to a dead-letter queue; send to its queue").
			With(DetailEntity, t.Path).With(DetailSubQueue, sub.String())
	}
	if topic, _, ok := SplitSubscription(t.Path); ok {
		return t, Errorf(InvalidOperation, "cannot send to a subscription; send to its topic %q", topic).
			With(DetailEntity, t.Path)
	}
	var err error
	t.Path, err = ParsePath(t.Path)
	return t, err
}

// Source is something one can receive from: a queue or subscription, its dead-letter queue, or one session of it.
// Sources compare with ==; Path must come from ParseSourcePath.
type Source struct {
	Path     string
	SubQueue SubQueue

	// SessionLock is the token of a session that the caller holds (SESS-19). The source is then that session alone.
	SessionLock LockToken
	// Session is the id of a session that the caller need not hold. Only what does not receive takes such a source: a
	// Peek (SESS-39), a Purge (PURGE-7), and a Watch for the end of its lock.
	Session string
	// HeldSessions are all sessions of the queue that this Store has locked for its callers. Only a Watch takes such a
	// source.
	HeldSessions bool
}

// String returns the address of the source, for example "orders/$deadletterqueue" (DLQ-2).
func (s Source) String() string {
	switch s.SubQueue {
	case DeadLetterQueue:
		return s.Path + deadLetterSuffix
	case TransferDeadLetterQueue:
		return s.Path + transferSuffix + deadLetterSuffix
	default:
		return s.Path
	}
}

const (
	deadLetterSuffix = "/$deadletterqueue"
	transferSuffix   = "/$transfer"
)

// subQueueOf returns which sub-queue a path addresses, in any case (DLQ-2).
func subQueueOf(path string) SubQueue {
	path, isDead := strings.CutSuffix(Fold(strings.ReplaceAll(path, `\`, "/")), deadLetterSuffix)
	switch {
	case !isDead:
		return MainQueue
	case strings.HasSuffix(path, transferSuffix):
		return TransferDeadLetterQueue
	default:
		return DeadLetterQueue
	}
}

// Fold returns the source under the name it is looked up by.
func (s Source) Fold() Source {
	s.Path = Fold(s.Path)
	return s
}

// Parse checks a source that may be a held session.
func (s Source) Parse() (Source, error) {
	path, err := s.CheckedPath()
	if err != nil {
		return s, err
	}
	s.Path = path
	if s.SubQueue != MainQueue && (!s.SessionLock.IsZero() || s.Session != "") {
		return s, Errorf(SessionNotSupported, "a dead-letter queue has no sessions; leave the session out").
			With(DetailEntity, path).With(DetailSubQueue, s.SubQueue.String())
	}
	return s, nil
}

// ParseToReceive is Parse for verbs that take messages, for which a session must be held.
func (s Source) ParseToReceive() (Source, error) {
	s, err := s.Parse()
	if err == nil && s.Session != "" {
		err = Errorf(
			SessionRequired, "a session must be accepted before its messages are received; accept it, then use its lock token",
		).With(DetailEntity, s.Path)
	}
	return s, err
}

// CheckedPath checks s.Path as ParseSourcePath does, and also accepts the transfer dead-letter queue of $unmatched.
func (s Source) CheckedPath() (string, error) {
	path := strings.ReplaceAll(s.Path, `\`, "/")
	if s.SubQueue != TransferDeadLetterQueue || !IsUnmatched(path) {
		return ParseSourcePath(path)
	}
	topic, name, _ := SplitSubscription(path)
	topic, err := ParsePath(topic)
	return SubscriptionPath(topic, name), err
}

// IsUnmatched reports whether a path is that of an UnmatchedSubscription.
func IsUnmatched(path string) bool {
	_, name, ok := SplitSubscription(path)
	return ok && Fold(name) == UnmatchedSubscription
}
