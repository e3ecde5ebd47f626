package semantics

import "time"

// Limits of rules (RULE-4, ENT-3).
const (
	MaxSubscriptionsPerTopic      = 2000
	MaxSQLFiltersPerTopic         = 2000
	MaxCorrelationFiltersPerTopic = 100_000
	MaxRuleText                   = 1024 // characters of a filter's and of an action's SQL text
	MaxActionExpressions          = 32
)

// DefaultRule is the name of the rule that a subscription is created with unless it is given another (RULE-1).
const DefaultRule = "$Default"

// Rule selects messages of a topic for a subscription and may change its copies of them (RULE-1).
type Rule struct {
	Name      string
	Filter    RuleFilter
	Action    *SQLText // nil: the copy is the message as it was sent
	CreatedAt time.Time
}

// RuleFilter is exactly one of its fields (RULE-6).
type RuleFilter struct {
	All         bool // every message
	None        bool // no message
	Correlation *CorrelationFilter
	SQL         *SQLText
}

// SQLText is an SQL filter or action as the user wrote it, with the values of its @parameters (SQL-16): strings,
// numbers, bools, datetimes and timespans, together no larger than the headers of a message.
type SQLText struct {
	Expression string
	Parameters map[string]Value // by name, with or without the @, without case
}

// CorrelationFilter selects messages in which all the given fields are equal (CORR-1, CORR-2). A nil field is not
// given; one that is given but empty selects nothing, because an empty field of a message is not set (MSG-2). At least
// one field or property must be given, and together they must fit the headers of a message (MSG-15).
type CorrelationFilter struct {
	ContentType, CorrelationID, MessageID, ReplyTo, ReplyToSessionID, SessionID, Subject, To *string

	Properties map[string]Value // application properties, by name without case
}

// CompiledRule is a rule made ready for use. It is immutable and safe for concurrent use, and does not block. Messages
// given to it must have passed Validate.
type CompiledRule interface {
	// Matches reports whether the rule selects a message on its way in. An error says that the filter has no result for
	// this message (RULE-8), which is also so when all rules that were asked with this budget have spent it; its text
	// fits a dead-letter description.
	Matches(m *Message, budget *Budget) (bool, error)

	// HasAction reports whether Act does anything.
	HasAction() bool

	// Act returns the copy that the rule's action makes of a message, which it leaves as it is, with the application
	// property RuleName (TOPIC-6, ACT-2). The copy shares the body. Without an action it returns the message itself. An
	// error is as that of Matches, and comes without a copy.
	//
	// The caller checks the header limits of the copy (ACT-9, MSG-15). The copy may have a SessionID that differs from
	// its PartitionKey, because the partition stays as it was chosen (ACT-8), and no MessageID.
	Act(m *Message) (*Message, error)

	// Warnings returns, one sentence each, what is valid but probably not intended (SQL-12). Each starts with "filter:
	// " or "action: ".
	Warnings() []string
}

// CompileRule prepares a rule for use, or refuses it: FILTER_INVALID or ACTION_INVALID with the column (RULE-7). The
// package filter has the one that knows the language.
type CompileRule func(Rule) (CompiledRule, error)
