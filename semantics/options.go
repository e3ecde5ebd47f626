package semantics

import (
	"slices"
	"time"
)

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
	MaxPartitions           = 64
	DefaultPartitions       = 16 // of what has EnablePartitioning and no number
)

// Options are the options of an entity (spec section 3.1). OptionNames returns which of them a kind has; the others
// mean nothing to it.
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
	EnablePartitioning                  bool          // immutable; DUP-2 and BATCH-4
	Partitions                          int64         // immutable; over how many it is spread (PART-1)
	RedeliveryDelay                     time.Duration // how long a message stays invisible after a failed delivery
	ExpireDeferred                      bool          // deferred messages expire automatically (TTL-18)
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

	Durability EntityDurability // what its sends and settlements wait for (DUR-1)
}

// DefaultOptions returns the options of an entity that was created without any (ENT-6).
func DefaultOptions() Options { return defaultOptions }

var defaultOptions = func() (o Options) {
	for _, option := range optionTable {
		option.Value.reset(&o)
	}
	return o
}()

// ImmutableChanged is PROPERTY_IMMUTABLE for the named option (ENT-7).
func ImmutableChanged(entity, option string) *Error {
	return FieldError(
		PropertyImmutable, option, "can be set at creation only; delete and create the entity to change it",
	).
		With(DetailEntity, entity)
}

// Merge returns o with the named options taken from other. An unknown name is INVALID_ARGUMENT.
func (o Options) Merge(other Options, names []string) (Options, error) {
	for _, name := range names {
		option, ok := optionsByName[name]
		if !ok {
			return o, InvalidField(name, "is not an option")
		}
		option.Value.take(&other, &o)
	}
	return o, nil
}

// Difference is one option whose present value is not the one asked for (ENT-6).
type Difference struct{ Option, Present, Asked string }

// Differences compares the named options of o with those asked for.
func (o Options) Differences(asked Options, names []string) []Difference {
	var found []Difference
	for _, name := range names {
		option, ok := optionsByName[name]
		if !ok {
			continue
		}
		if present, wanted := option.Value.text(&o), option.Value.text(&asked); present != wanted {
			found = append(found, Difference{Option: name, Present: present, Asked: wanted})
		}
	}
	return found
}

// Validate checks every option against its bounds; the bounds themselves pass (ENT-11). The error names option and
// bound; of several options that are out of bounds it names a number rather than a duration, a word or a text.
func (o Options) Validate(kind Kind) error {
	if err := o.checkStatus(kind); err != nil {
		return err
	}
	inTurn := []func(OptionValue) bool{is[IntegerOption], is[DurationOption], is[WordOption], is[TextOption]}
	for _, isNext := range inTurn {
		for _, option := range optionTable {
			if !isNext(option.Value) {
				continue
			}
			if err := option.Value.check(option.Name, &o); err != nil {
				return err
			}
		}
	}
	return nil
}

func is[T OptionValue](value OptionValue) bool {
	_, ok := value.(T)
	return ok
}

// checkStatus refuses a status that the kind does not have (STAT-1).
func (o Options) checkStatus(kind Kind) error {
	switch {
	case kind == TopicKind && o.Status == StatusReceiveDisabled,
		kind == SubscriptionKind && o.Status == StatusSendDisabled:
		return InvalidField("status", "must not be %s, which a %s does not have", o.Status, kind)
	default:
		return nil
	}
}

// Partitioned returns the options with what follows from those of partitions, where given names the options the caller
// set. EnablePartitioning without a number means DefaultPartitions; more than one partition means EnablePartitioning,
// so that messages that are sent together share a key (PART-1, BATCH-4).
func (o Options) Partitioned(given []string) Options {
	if o.EnablePartitioning && !slices.Contains(given, "partitions") {
		o.Partitions = DefaultPartitions
	}
	o.EnablePartitioning = o.EnablePartitioning || o.Partitions > 1
	return o
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
