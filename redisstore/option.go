package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sidebus/sidebus/semantics"
)

// maxMessageSize is the option from which a second field follows, for scripts.
const maxMessageSize = "maxMessageSizeInKilobytes"

// storedOption is an option as the hash of an entity has it.
type storedOption struct {
	semantics.Option

	field string
	shift int // a number is stored in units that are smaller by so many bits
}

// fieldNames are the fields of options that fieldOf would name otherwise. Stored data has them.
var fieldNames = map[string]string{
	"maxSizeInMegabytes":                        "max_bytes",
	maxMessageSize:                              "max_message_bytes",
	"defaultMessageTimeToLive":                  "default_ttl_ms",
	"deadLetteringOnMessageExpiration":          "dead_letter_expired",
	"deadLetteringOnFilterEvaluationExceptions": "dead_letter_failures",
	"enableBatchedOperations":                   "batched_operations",
	"duplicateDetectionHistoryTimeWindow":       "duplicate_window_ms",
	"duplicateHistoryMaxEntries":                "duplicate_max_entries",
	"enablePartitioning":                        "partitioned",
	"autoDeleteOnIdle":                          "idle_ms",
	"autoDeleteKeepsDeadLetters":                "idle_keeps_dead",
	"forwardDeadLetteredMessagesTo":             "forward_dead_to",
}

// shifts are the options that are stored in bytes.
var shifts = map[string]int{"maxSizeInMegabytes": 20, maxMessageSize: 10}

var storedByName, storedByField = func() (byName, byField map[string]storedOption) {
	byName, byField = map[string]storedOption{}, map[string]storedOption{}
	for _, option := range semantics.AllOptions() {
		stored := storedOption{Option: option, field: fieldOf(option), shift: shifts[option.Name]}
		byName[option.Name], byField[stored.field] = stored, stored
	}
	return byName, byField
}()

// fieldOf returns the field of an option: its name in snake_case, with the unit of a duration.
func fieldOf(option semantics.Option) string {
	if field, ok := fieldNames[option.Name]; ok {
		return field
	}
	var field strings.Builder
	for _, r := range option.Name {
		if unicode.IsUpper(r) {
			field.WriteByte('_')
		}
		field.WriteRune(unicode.ToLower(r))
	}
	if _, isDuration := option.Value.(semantics.DurationOption); isDuration {
		field.WriteString("_ms")
	}
	return field.String()
}

// appendOptions adds the fields under which the named options are kept, with their values.
func appendOptions(args []any, o semantics.Options, names []string) []any {
	for _, name := range names {
		stored, ok := storedByName[name]
		if !ok {
			continue
		}
		args = append(args, stored.field, stored.value(&o))
		if name == maxMessageSize {
			args = append(args, "max_batch_bytes", o.MaxBatchBytes())
		}
	}
	return args
}

func (s storedOption) value(o *semantics.Options) any {
	switch v := s.Value.(type) {
	case semantics.DurationOption:
		return ttlMillis(v.At(o))
	case semantics.IntegerOption:
		return *v.At(o) << s.shift
	case semantics.BoolOption:
		return flag(*v.At(o))
	case semantics.WordOption:
		return v.Text(o)
	case semantics.TextOption:
		return *v.At(o)
	default:
		return nil
	}
}

// read sets the option to what its field has. An error is one of a number.
func (s storedOption) read(o *semantics.Options, text string) error {
	switch v := s.Value.(type) {
	case semantics.DurationOption:
		ms, err := strconv.ParseInt(text, 10, 64)
		*v.At(o) = spanOf(ms)
		return err
	case semantics.IntegerOption:
		n, err := strconv.ParseInt(text, 10, 64)
		*v.At(o) = n >> s.shift
		return err
	case semantics.BoolOption:
		*v.At(o) = text == "1"
	case semantics.WordOption:
		v.Set(o, wordOf(s.Name, text, v.Words))
	case semantics.TextOption:
		*v.At(o) = text
	}
	return nil
}

// spanOf is the opposite of ttlMillis.
func spanOf(ms int64) time.Duration {
	if ms < 0 {
		return semantics.Never
	}
	return time.Duration(ms) * time.Millisecond
}

// wordOf returns the number of a word. One that this version does not know counts as the default, except a status,
// which permits no receives then.
func wordOf(option, text string, words []string) uint8 {
	switch i := slices.Index(words, text); {
	case i >= 0:
		return uint8(i)
	case option == "status":
		return uint8(semantics.StatusReceiveDisabled)
	default:
		return 0
	}
}

// optionOfField returns the option that a field is kept for.
func optionOfField(field string) string { return storedByField[field].Name }

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// readEntity reads the hash of an entity. Options that its kind does not have get their defaults.
func readEntity(r *reply) (semantics.Entity, error) {
	e := semantics.Entity{Options: semantics.DefaultOptions()}
	fields := r.list()
	for fields.more() {
		name, value := fields.text(), fields.text()
		err := readField(&e, name, value)
		if err != nil && fields.err == nil {
			fields.err = err
		}
	}
	if e.Options.Partitions <= 1 && (e.Kind != semantics.SubscriptionKind || !semantics.IsPartition(e.Name)) {
		e.Incarnation = 0
	}
	return e, fields.failure()
}

// readField reads one field of an entity. Those that scripts keep for themselves are skipped.
func readField(e *semantics.Entity, name, value string) (err error) {
	switch name {
	case "kind":
		e.Kind = oneOf(
			strings.TrimPrefix(plainKind(value), ofPartitioned), semantics.QueueKind, semantics.TopicKind,
			semantics.SubscriptionKind,
		)
	case "name":
		e.Name = value
	case "incarnation":
		e.Incarnation, err = strconv.ParseInt(value, 10, 64)
	case "created_ms":
		e.CreatedAt, err = instantIn(value)
	case "updated_ms":
		e.UpdatedAt, err = instantIn(value)
	case "accessed_ms":
		e.AccessedAt, err = instantIn(value)
	default:
		if stored, ok := storedByField[strings.TrimPrefix(name, ofRecord)]; ok {
			err = stored.read(&e.Options, value)
		}
	}
	return err
}

func instantIn(ms string) (time.Time, error) {
	n, err := strconv.ParseInt(ms, 10, 64)
	return instantOf(n), err
}

// oneOf returns the value that is written as word, the first one if none is.
func oneOf[T fmt.Stringer](word string, values ...T) T {
	for _, v := range values {
		if v.String() == word {
			return v
		}
	}
	return values[0]
}
