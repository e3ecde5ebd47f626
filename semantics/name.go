package semantics

import (
	"strings"
)

// Bounds of names (ENT-3), in characters.
const (
	MaxPathLength      = 260
	MaxNamespaceLength = 64
	MaxNameLength      = 50 // of a subscription or rule
)

// ParsePath checks the path of a queue or topic and gives it back with \ turned into / (ENT-3, ENT-5). The path
// keeps its case; entities are looked up by Fold of it (ENT-4). A path that breaks a rule is INVALID_ARGUMENT.
func ParsePath(path string) (string, error) {
	path = strings.ReplaceAll(path, `\`, "/")
	bad := func(format string, args ...any) (string, error) {
		return "", fieldError(InvalidArgument, "name", format, args...)
	}
	switch {
	case path == "":
		return bad("must not be empty")
	case len(path) > MaxPathLength:
		return bad("is %d characters long, at most %d are allowed", len(path), MaxPathLength)
	}
	for i, r := range path {
		if r != '/' && !isNameChar(r) {
			return bad("%q has %q at position %d; letters, digits, '.', '-', '_' and '/' are allowed", cut(path), r, i)
		}
	}
	if !isAlphanumeric(path[0]) || !isAlphanumeric(path[len(path)-1]) {
		return bad("%q must start and end with a letter or digit", cut(path))
	}
	for i, segment := range strings.Split(path, "/") {
		if segment == "" {
			return bad("%q has an empty segment", cut(path))
		}
		if i > 0 && strings.EqualFold(segment, "subscriptions") {
			return bad("%q has the reserved segment %q", cut(path), segment)
		}
	}
	return path, nil
}

// subscriptionsSegment stands between the path of a topic and the name of one of its subscriptions.
const subscriptionsSegment = "/Subscriptions/"

// SubscriptionPath is the path of a subscription: "news/Subscriptions/eu".
func SubscriptionPath(topic, name string) string { return topic + subscriptionsSegment + name }

// SplitSubscription takes the path of a subscription apart; ok is false for any other path.
func SplitSubscription(path string) (topic, name string, ok bool) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 || !strings.HasSuffix(Fold(path[:at+1]), Fold(subscriptionsSegment)) {
		return "", "", false
	}
	return path[:at+1-len(subscriptionsSegment)], path[at+1:], true
}

// ParseSourcePath checks the path of a queue or of a subscription, and gives it back as ParsePath does.
func ParseSourcePath(path string) (string, error) {
	path = strings.ReplaceAll(path, `\`, "/")
	topic, name, ok := SplitSubscription(path)
	if !ok {
		return ParsePath(path)
	}
	topic, err := ParsePath(topic)
	if err != nil {
		return "", err
	}
	return SubscriptionPath(topic, name), parseName("subscription", name)
}

// parsePath is ParseSourcePath of a source, which may be what could not be forwarded of the messages that no subscription wanted.
func (s Source) parsePath() (string, error) {
	path := strings.ReplaceAll(s.Path, `\`, "/")
	if s.SubQueue != TransferDeadLetterQueue || !isUnmatched(path) {
		return ParseSourcePath(path)
	}
	topic, name, _ := SplitSubscription(path)
	topic, err := ParsePath(topic)
	return SubscriptionPath(topic, name), err
}

// isUnmatched reports whether a path is that of an UnmatchedSubscription.
func isUnmatched(path string) bool {
	_, name, ok := SplitSubscription(path)
	return ok && Fold(name) == UnmatchedSubscription
}

// ParseRuleName checks the name of a rule (ENT-3).
func ParseRuleName(name string) error {
	if Fold(name) == Fold(DefaultRule) {
		return nil
	}
	return parseName("rule", name)
}

// parseName checks the name of a subscription or rule.
func parseName(field, name string) error {
	if name == "" || len(name) > MaxNameLength {
		return fieldError(InvalidArgument, field, "must be 1 to %d characters long, %q has %d", MaxNameLength, cut(name), len(name))
	}
	for i, r := range name {
		if !isNameChar(r) {
			return fieldError(InvalidArgument, field, "%q has %q at position %d; letters, digits, '.', '-' and '_' are allowed", cut(name), r, i)
		}
	}
	if !isAlphanumeric(name[0]) || !isAlphanumeric(name[len(name)-1]) {
		return fieldError(InvalidArgument, field, "%q must start and end with a letter or digit", cut(name))
	}
	return nil
}

// ParseNamespace checks a namespace: 1 to 64 letters, digits, '.', '-' or '_'.
func ParseNamespace(name string) (string, error) {
	if name == "" || len(name) > MaxNamespaceLength {
		return "", fieldError(InvalidArgument, "namespace", "must be 1 to %d characters long", MaxNamespaceLength)
	}
	for _, r := range name {
		if !isNameChar(r) {
			return "", fieldError(InvalidArgument, "namespace", "has %q; letters, digits, '.', '-' and '_' are allowed", r)
		}
	}
	return name, nil
}

// Fold gives the form under which a name is looked up and compared (ENT-4).
func Fold(name string) string { return strings.ToLower(name) }

func isNameChar(r rune) bool {
	return r < 0x80 && (isAlphanumeric(byte(r)) || r == '.' || r == '-' || r == '_')
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// SubQueue names one of the queues that lie below a source (ENT-1).
type SubQueue uint8

// The sub-queues.
const (
	MainQueue SubQueue = iota
	DeadLetterQueue
	TransferDeadLetterQueue // what could not be forwarded (DLQ-13)
)

// IsDeadLetters reports whether it is one of the two that hold dead letters, which take no sends and which nothing leaves by itself
// (DLQ-3, DLQ-4).
func (q SubQueue) IsDeadLetters() bool { return q != MainQueue }

// String gives the name of the sub-queue as the API writes it.
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

// Source is something one can receive from: a queue or subscription, its dead-letter queue, or one session of it. Sources compare
// with ==; Path must come from ParseSourcePath.
type Source struct {
	Path     string
	SubQueue SubQueue

	// SessionLock is the token of a session that the caller holds (SESS-19). The source is then that session alone.
	SessionLock LockToken
	// Session is the id of a session that the caller need not hold. Only what does not receive takes such a source: a
	// Peek (SESS-39), a Purge (PURGE-7), and a Watch for the end of its lock.
	Session string
}

// String gives the address of the source, for example "orders/$deadletterqueue" (DLQ-2).
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

// subQueueOf tells which sub-queue a path addresses, in any case (DLQ-2).
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

// Fold gives the source under the name it is looked up by.
func (s Source) Fold() Source {
	s.Path = Fold(s.Path)
	return s
}
