package semantics

import (
	"fmt"
	"slices"
)

// Status says which verbs an entity takes (STAT-1).
type Status uint8

// The statuses of a queue.
const (
	StatusActive Status = iota
	StatusDisabled
	StatusSendDisabled
	StatusReceiveDisabled
)

var statusNames = []string{"ACTIVE", "DISABLED", "SEND_DISABLED", "RECEIVE_DISABLED"}

// String returns the status as the API writes it.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("STATUS_%d", s)
}

// CanSend reports whether the status permits sends (STAT-2).
func (s Status) CanSend() bool { return s == StatusActive || s == StatusReceiveDisabled }

// CanReceive reports whether the status permits receives and peeks (STAT-2).
func (s Status) CanReceive() bool { return s == StatusActive || s == StatusSendDisabled }

// Overflow says what happens to a copy for a subscription that has as many messages as MaxMessageCount permits
// (TOPIC-7).
type Overflow uint8

// The message is refused, for all subscriptions; its copy becomes a dead letter; or the oldest available message makes
// way.
const (
	RejectOverflow Overflow = iota
	DeadLetterOverflow
	DropOldestOverflow
)

// String returns the value as the API writes it.
func (v Overflow) String() string { return wordOf(overflowNames, v) }

// OnDisconnect says what becomes of the locks of a stream that breaks without being closed (LOCK-10).
type OnDisconnect uint8

// Expire keeps them until their end and counts a delivery then; Release makes the messages available again at once,
// uncounted.
const (
	ExpireOnDisconnect OnDisconnect = iota
	ReleaseOnDisconnect
)

// String returns the value as the API writes it.
func (v OnDisconnect) String() string { return wordOf(onDisconnectNames, v) }

// SessionExpiryMode says what expires when the time of a message of a session is over (TTL-23).
type SessionExpiryMode uint8

// Only the message, or with it all messages of its session that are neither locked nor scheduled.
const (
	ExpireMessage SessionExpiryMode = iota
	ExpireSession
)

// String returns the value as the API writes it.
func (v SessionExpiryMode) String() string { return wordOf(sessionExpiryNames, v) }

// SessionOnDeadLetter says what becomes of a session when one of its messages becomes a dead letter (SESS-29).
type SessionOnDeadLetter uint8

// The session continues with its next message, or is blocked until an operator unblocks it.
const (
	ContinueSession SessionOnDeadLetter = iota
	BlockSession
)

// String returns the value as the API writes it.
func (v SessionOnDeadLetter) String() string { return wordOf(sessionOnDeadLetterNames, v) }

// AcceptNext is whether a queue's sessions may be accepted without naming them (RR-5).
type AcceptNext uint8

// The values of AcceptNext.
const (
	AcceptNextAllowed AcceptNext = iota
	AcceptNextForbidden
)

// String returns the value as the API writes it.
func (v AcceptNext) String() string { return wordOf(acceptNextNames, v) }

// EntityDurability is the level of durability that an entity asks for (DUR-1).
type EntityDurability uint8

// The level of the sidecar that is called, or one of the levels of Durability.
const (
	AsSidecar EntityDurability = iota
	AtMemory
	AtDisk
	AtReplica
)

// String returns the value as the API writes it.
func (v EntityDurability) String() string { return wordOf(entityDurabilityNames, v) }

// Level returns the level that is meant at a sidecar which has a level of its own.
func (v EntityDurability) Level(sidecar Durability) Durability {
	if v == AsSidecar {
		return sidecar
	}
	return Durability(v - 1)
}

// ParseEntityDurability reads a value as the API writes it; one that it does not know is AsSidecar.
func ParseEntityDurability(text string) EntityDurability {
	return EntityDurability(max(0, slices.Index(entityDurabilityNames, text))) //nolint:gosec // there are four
}

var (
	onDisconnectNames        = []string{"EXPIRE", "RELEASE"}
	sessionExpiryNames       = []string{"MESSAGE", "SESSION"}
	sessionOnDeadLetterNames = []string{"CONTINUE", "BLOCK"}
	acceptNextNames          = []string{"ALLOWED", "FORBIDDEN"}
	entityDurabilityNames    = []string{"SIDECAR", "MEMORY", "DISK", "REPLICA"}
	overflowNames            = []string{"REJECT", "DEAD_LETTER", "DROP_OLDEST"}
)

func wordOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprint(uint8(v))
}
