package semantics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
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

var statusNames = [...]string{"ACTIVE", "DISABLED", "SEND_DISABLED", "RECEIVE_DISABLED"}

// String gives the status as the API writes it.
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

// Bounds of queue options (spec section 3.1).
const (
	MinLockDuration         = 5 * time.Second
	MaxLockDuration         = 5 * time.Minute
	MinDefaultTimeToLive    = time.Second
	MaxSizeMegabytes        = 81920
	MaxMessageSizeKilobytes = 102400
	MinDuplicateWindow      = 20 * time.Second
	MaxDuplicateWindow      = 7 * 24 * time.Hour
	MaxDelay                = 7 * 24 * time.Hour // of an abandoned message (SETTLE-11) and as RedeliveryDelay
	MaxUserMetadata         = 1024               // characters
	MaxSessionInFlight      = 1000
	MinAutoDeleteOnIdle     = 5 * time.Minute
)

// Options are the options of an entity (spec section 3.1). OptionNames tells which of them a kind has; the others mean
// nothing to it.
type Options struct {
	LockDuration                     time.Duration
	MaxSizeInMegabytes               int64
	MaxMessageSizeInKilobytes        int64
	DefaultMessageTimeToLive         time.Duration // Never: messages do not expire
	DeadLetteringOnMessageExpiration bool
	MaxDeliveryCount                 int64
	MaxMessageCount                  int64 // 0: no bound
	Status                           Status
	UserMetadata                     string
	EnableBatchedOperations          bool // accepted, no visible effect

	RequiresDuplicateDetection          bool // immutable
	DuplicateDetectionHistoryTimeWindow time.Duration
	DuplicateHistoryMaxEntries          int64         // most ids remembered at a time (DUP-11)
	ForgetOnCancel                      bool          // a cancelled message's id is forgotten (DUP-6)
	EnablePartitioning                  bool          // immutable; no effect but DUP-2 and BATCH-4
	RedeliveryDelay                     time.Duration // how long a message stays invisible after a failed delivery
	ExpireDeferred                      bool          // deferred messages expire by themselves (TTL-18)
	DeadLetterTTL                       time.Duration // how long dead letters are kept (TTL-19); Never

	RequiresSession   bool              // immutable: every message belongs to a session (SESS-5, SESS-6)
	SessionInFlight   int64             // most unsettled messages of a session at a time (SESS-27)
	OnDisconnect      OnDisconnect      // what becomes of the locks of a stream that breaks (LOCK-10)
	SessionExpiryMode SessionExpiryMode // what expires with a message of a session (TTL-23)
	// what becomes of a session that lost a message to the dead letters (SESS-29)
	SessionOnDeadLetter SessionOnDeadLetter
	AcceptNext          AcceptNext // whether sessions may be accepted without naming them (RR-5)
	// how long the state of a session without messages is kept (SESS-33c); Never
	SessionStateTTL time.Duration

	SupportOrdering bool // of a topic: accepted, no visible effect
	FailIfUnmatched bool // of a topic: a message that no subscription gets is refused (TOPIC-3)

	AutoDeleteOnIdle           time.Duration // how long an unused entity is kept (IDLE-1); Never
	AutoDeleteKeepsDeadLetters bool          // not while it has dead letters (IDLE-9)

	// Paths of queues or topics, "" for none.
	ForwardTo                     string // where messages go on to (FWD-1)
	ForwardDeadLetteredMessagesTo string // where dead letters go on to (FWD-9)
	UnmatchedTo                   string // of a topic: where messages that no subscription gets go on to (TOPIC-3)

	// a message for which a rule has no result becomes a dead letter (RULE-8)
	DeadLetteringOnFilterEvaluationExceptions bool
	Overflow                                  Overflow // what happens to a copy above MaxMessageCount (TOPIC-7)
}

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

// String gives the value as the API writes it.
func (v Overflow) String() string { return wordOf(overflowNames, v) }

// OnDisconnect says what becomes of the locks of a stream that breaks without being closed (LOCK-10).
type OnDisconnect uint8

// Expire keeps them until their end and counts a delivery then; Release gives the messages back at once, uncounted.
const (
	ExpireOnDisconnect OnDisconnect = iota
	ReleaseOnDisconnect
)

// String gives the value as the API writes it.
func (v OnDisconnect) String() string { return wordOf(onDisconnectNames, v) }

// SessionExpiryMode says what expires when the time of a message of a session is over (TTL-23).
type SessionExpiryMode uint8

// Only the message, or with it all messages of its session that are neither locked nor scheduled.
const (
	ExpireMessage SessionExpiryMode = iota
	ExpireSession
)

// String gives the value as the API writes it.
func (v SessionExpiryMode) String() string { return wordOf(sessionExpiryNames, v) }

// SessionOnDeadLetter says what becomes of a session when one of its messages becomes a dead letter (SESS-29).
type SessionOnDeadLetter uint8

// The session goes on with its next message, or is locked out until somebody unblocks it.
const (
	ContinueSession SessionOnDeadLetter = iota
	BlockSession
)

// String gives the value as the API writes it.
func (v SessionOnDeadLetter) String() string { return wordOf(sessionOnDeadLetterNames, v) }

// AcceptNext says whether a queue's sessions may be accepted without naming them (RR-5).
type AcceptNext uint8

// The values of AcceptNext.
const (
	AcceptNextAllowed AcceptNext = iota
	AcceptNextForbidden
)

// String gives the value as the API writes it.
func (v AcceptNext) String() string { return wordOf(acceptNextNames, v) }

var (
	onDisconnectNames        = []string{"EXPIRE", "RELEASE"}
	sessionExpiryNames       = []string{"MESSAGE", "SESSION"}
	sessionOnDeadLetterNames = []string{"CONTINUE", "BLOCK"}
	acceptNextNames          = []string{"ALLOWED", "FORBIDDEN"}
	overflowNames            = []string{"REJECT", "DEAD_LETTER", "DROP_OLDEST"}
)

func wordOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprint(uint8(v))
}

// DefaultOptions gives the options of an entity that was created without any (ENT-6).
func DefaultOptions() Options {
	return Options{
		LockDuration:              time.Minute,
		MaxSizeInMegabytes:        1024,
		MaxMessageSizeInKilobytes: 256,
		DefaultMessageTimeToLive:  Never,
		MaxDeliveryCount:          10,
		EnableBatchedOperations:   true,

		DuplicateDetectionHistoryTimeWindow: 10 * time.Minute,
		DuplicateHistoryMaxEntries:          1_000_000,
		DeadLetterTTL:                       Never,

		SessionInFlight: 100,
		SessionStateTTL: Never, AutoDeleteOnIdle: Never,

		SupportOrdering: true,
		DeadLetteringOnFilterEvaluationExceptions: true,
	}
}

// OptionNames lists the options of a kind by the names the API uses, in the order of the specification.
func OptionNames(kind Kind) []string { return optionNames[kind] }

var optionNames = [...][]string{
	QueueKind: {
		"lockDuration", "maxSizeInMegabytes", "maxMessageSizeInKilobytes", "defaultMessageTimeToLive",
		"deadLetteringOnMessageExpiration", "maxDeliveryCount", "maxMessageCount", "status", "userMetadata",
		"enableBatchedOperations", "requiresDuplicateDetection", "duplicateDetectionHistoryTimeWindow",
		"duplicateHistoryMaxEntries", "forgetOnCancel", "enablePartitioning", "redeliveryDelay", "expireDeferred",
		"deadLetterTtl", "requiresSession", "sessionInFlight", "onDisconnect", "sessionExpiryMode",
		"sessionOnDeadLetter",
		"acceptNext", "sessionStateTtl", "autoDeleteOnIdle", "autoDeleteKeepsDeadLetters", "forwardTo",
		"forwardDeadLetteredMessagesTo",
	},
	TopicKind: {
		"maxSizeInMegabytes", "maxMessageSizeInKilobytes", "defaultMessageTimeToLive", "status", "userMetadata",
		"enableBatchedOperations", "requiresDuplicateDetection", "duplicateDetectionHistoryTimeWindow",
		"duplicateHistoryMaxEntries", "forgetOnCancel", "enablePartitioning", "supportOrdering", "failIfUnmatched",
		"unmatchedTo", "autoDeleteOnIdle", "autoDeleteKeepsDeadLetters",
	},
	SubscriptionKind: {
		"lockDuration", "defaultMessageTimeToLive", "deadLetteringOnMessageExpiration",
		"deadLetteringOnFilterEvaluationExceptions", "maxDeliveryCount", "maxMessageCount", "overflow", "status",
		"userMetadata", "enableBatchedOperations", "redeliveryDelay", "expireDeferred", "deadLetterTtl",
		"requiresSession",
		"sessionInFlight", "onDisconnect", "sessionExpiryMode", "sessionOnDeadLetter", "acceptNext", "sessionStateTtl",
		"autoDeleteOnIdle", "autoDeleteKeepsDeadLetters", "forwardTo", "forwardDeadLetteredMessagesTo",
	},
}

// Immutable reports whether the named option can be set at creation only (ENT-16).
func Immutable(option string) bool {
	return option == "requiresDuplicateDetection" || option == "enablePartitioning" || option == "requiresSession"
}

// ImmutableChanged is PROPERTY_IMMUTABLE for the named option (ENT-7).
func ImmutableChanged(entity, option string) *Error {
	return FieldError(
		PropertyImmutable, option, "can be set at creation only; delete and create the entity to change it",
	).
		With(DetailEntity, entity)
}

// option gives a pointer to the named option, nil for an unknown name.
func (o *Options) option(name string) any {
	switch name {
	case "lockDuration":
		return &o.LockDuration
	case "maxSizeInMegabytes":
		return &o.MaxSizeInMegabytes
	case "maxMessageSizeInKilobytes":
		return &o.MaxMessageSizeInKilobytes
	case "defaultMessageTimeToLive":
		return &o.DefaultMessageTimeToLive
	case "deadLetteringOnMessageExpiration":
		return &o.DeadLetteringOnMessageExpiration
	case "maxDeliveryCount":
		return &o.MaxDeliveryCount
	case "maxMessageCount":
		return &o.MaxMessageCount
	case "status":
		return &o.Status
	case "userMetadata":
		return &o.UserMetadata
	case "enableBatchedOperations":
		return &o.EnableBatchedOperations
	case "requiresDuplicateDetection":
		return &o.RequiresDuplicateDetection
	case "duplicateDetectionHistoryTimeWindow":
		return &o.DuplicateDetectionHistoryTimeWindow
	case "duplicateHistoryMaxEntries":
		return &o.DuplicateHistoryMaxEntries
	case "forgetOnCancel":
		return &o.ForgetOnCancel
	case "enablePartitioning":
		return &o.EnablePartitioning
	case "redeliveryDelay":
		return &o.RedeliveryDelay
	case "expireDeferred":
		return &o.ExpireDeferred
	case "deadLetterTtl":
		return &o.DeadLetterTTL
	case "requiresSession":
		return &o.RequiresSession
	case "sessionInFlight":
		return &o.SessionInFlight
	case "onDisconnect":
		return &o.OnDisconnect
	case "sessionExpiryMode":
		return &o.SessionExpiryMode
	case "sessionOnDeadLetter":
		return &o.SessionOnDeadLetter
	case "acceptNext":
		return &o.AcceptNext
	case "sessionStateTtl":
		return &o.SessionStateTTL
	case "supportOrdering":
		return &o.SupportOrdering
	case "failIfUnmatched":
		return &o.FailIfUnmatched
	case "deadLetteringOnFilterEvaluationExceptions":
		return &o.DeadLetteringOnFilterEvaluationExceptions
	case "overflow":
		return &o.Overflow
	case "autoDeleteOnIdle":
		return &o.AutoDeleteOnIdle
	case "autoDeleteKeepsDeadLetters":
		return &o.AutoDeleteKeepsDeadLetters
	case "forwardTo":
		return &o.ForwardTo
	case "forwardDeadLetteredMessagesTo":
		return &o.ForwardDeadLetteredMessagesTo
	case "unmatchedTo":
		return &o.UnmatchedTo
	default:
		return nil
	}
}

// CheckOptionNames refuses names that are no options of the kind: INVALID_ARGUMENT.
func CheckOptionNames(kind Kind, names []string) error {
	for _, name := range names {
		if !slices.Contains(optionNames[kind], name) {
			return FieldError(InvalidArgument, name, "is not an option of a %s", kind)
		}
	}
	return nil
}

// Merge gives o with the named options taken from other. An unknown name is INVALID_ARGUMENT.
func (o Options) Merge(other Options, names []string) (Options, error) {
	for _, name := range names {
		switch to := o.option(name).(type) {
		case *time.Duration:
			*to = *other.option(name).(*time.Duration)
		case *int64:
			*to = *other.option(name).(*int64)
		case *bool:
			*to = *other.option(name).(*bool)
		case *string:
			*to = *other.option(name).(*string)
		case *Status:
			*to = *other.option(name).(*Status)
		case *OnDisconnect:
			*to = *other.option(name).(*OnDisconnect)
		case *SessionExpiryMode:
			*to = *other.option(name).(*SessionExpiryMode)
		case *SessionOnDeadLetter:
			*to = *other.option(name).(*SessionOnDeadLetter)
		case *AcceptNext:
			*to = *other.option(name).(*AcceptNext)
		case *Overflow:
			*to = *other.option(name).(*Overflow)
		default:
			return o, FieldError(InvalidArgument, name, "is not an option")
		}
	}
	return o, nil
}

// Difference is one option whose present value is not the one asked for (ENT-6).
type Difference struct{ Option, Present, Asked string }

// Differences compares the named options of o with those asked for.
func (o Options) Differences(asked Options, names []string) []Difference {
	var found []Difference
	for _, name := range names {
		present, wanted := optionText(o.option(name)), optionText(asked.option(name))
		if present != wanted {
			found = append(found, Difference{Option: name, Present: present, Asked: wanted})
		}
	}
	return found
}

func optionText(value any) string {
	switch v := value.(type) {
	case *time.Duration:
		if *v == Never {
			return "never"
		}
		return strconv.FormatFloat(v.Seconds(), 'f', -1, 64) + "s"
	case *int64:
		return fmt.Sprint(*v)
	case *bool:
		return fmt.Sprint(*v)
	case *string:
		return *v
	case fmt.Stringer: // the enumerations
		return v.String()
	default:
		return ""
	}
}

// Validate checks every option against its bounds; the bounds themselves pass (ENT-11). The error names option and
// bound.
func (o Options) Validate(kind Kind) error {
	if err := o.checkStatus(kind); err != nil {
		return err
	}
	numbers := []struct {
		name             string
		value, low, high int64
	}{
		{"maxSizeInMegabytes", o.MaxSizeInMegabytes, 1, MaxSizeMegabytes},
		{"maxMessageSizeInKilobytes", o.MaxMessageSizeInKilobytes, 1, MaxMessageSizeKilobytes},
		{"maxDeliveryCount", o.MaxDeliveryCount, 1, math.MaxInt32},
		{"maxMessageCount", o.MaxMessageCount, 0, math.MaxInt64},
		{"duplicateHistoryMaxEntries", o.DuplicateHistoryMaxEntries, 1, math.MaxInt64},
		{"sessionInFlight", o.SessionInFlight, 1, MaxSessionInFlight},
	}
	for _, n := range numbers {
		if n.value < n.low || n.value > n.high {
			return FieldError(ArgumentOutOfRange, n.name, "is %d, must be %d to %d", n.value, n.low, n.high)
		}
	}
	spans := []struct {
		name             string
		value, low, high time.Duration
	}{
		{"lockDuration", o.LockDuration, MinLockDuration, MaxLockDuration},
		{"defaultMessageTimeToLive", o.DefaultMessageTimeToLive, MinDefaultTimeToLive, Never},
		{
			"duplicateDetectionHistoryTimeWindow",
			o.DuplicateDetectionHistoryTimeWindow,
			MinDuplicateWindow,
			MaxDuplicateWindow,
		},
		{"redeliveryDelay", o.RedeliveryDelay, 0, MaxDelay},
		{"deadLetterTtl", o.DeadLetterTTL, MinDefaultTimeToLive, Never},
		{"sessionStateTtl", o.SessionStateTTL, MinDefaultTimeToLive, Never},
		{"autoDeleteOnIdle", o.AutoDeleteOnIdle, MinAutoDeleteOnIdle, Never},
	}
	for _, d := range spans {
		switch {
		case d.value >= d.low && d.value <= d.high:
		case d.high == Never:
			return FieldError(ArgumentOutOfRange, d.name, "is %s, must be at least %s", d.value, d.low)
		default:
			return FieldError(ArgumentOutOfRange, d.name, "is %s, must be %s to %s", d.value, d.low, d.high)
		}
	}
	words := []struct {
		name    string
		value   uint8
		allowed []string
	}{
		{"status", uint8(o.Status), statusNames[:]},
		{"onDisconnect", uint8(o.OnDisconnect), onDisconnectNames},
		{"sessionExpiryMode", uint8(o.SessionExpiryMode), sessionExpiryNames},
		{"sessionOnDeadLetter", uint8(o.SessionOnDeadLetter), sessionOnDeadLetterNames},
		{"acceptNext", uint8(o.AcceptNext), acceptNextNames},
		{"overflow", uint8(o.Overflow), overflowNames},
	}
	for _, w := range words {
		if int(w.value) >= len(w.allowed) {
			return FieldError(InvalidArgument, w.name, "must be one of %v", w.allowed)
		}
	}
	if !utf8.ValidString(o.UserMetadata) {
		return FieldError(InvalidArgument, "userMetadata", "must be valid UTF-8")
	}
	if n := UTF16Length(o.UserMetadata); n > MaxUserMetadata {
		return FieldError(
			ArgumentOutOfRange, "userMetadata", "is %d characters long, at most %d are allowed", n, MaxUserMetadata,
		)
	}
	return nil
}

// checkStatus refuses a status that the kind does not have (STAT-1).
func (o Options) checkStatus(kind Kind) error {
	switch {
	case kind == TopicKind && o.Status == StatusReceiveDisabled,
		kind == SubscriptionKind && o.Status == StatusSendDisabled:
		return FieldError(InvalidArgument, "status", "must not be %s, which a %s does not have", o.Status, kind)
	default:
		return nil
	}
}

// MaxBytes is the most bytes the queue may hold, its dead letters included (DLQ-5, QUOTA-6).
func (o Options) MaxBytes() int64 { return o.MaxSizeInMegabytes << 20 }

// MaxMessageBytes is the most bytes one message may count for (MSG-20).
func (o Options) MaxMessageBytes() int64 { return o.MaxMessageSizeInKilobytes << 10 }

// MaxBatchBytes is the most bytes one batch may count for (MSG-21): 1 MiB, or 256 KiB where the entity's messages are
// no larger than that.
func (o Options) MaxBatchBytes() int64 {
	if o.MaxMessageBytes() <= SmallBatchSize {
		return SmallBatchSize
	}
	return MaxBatchSize
}
