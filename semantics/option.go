package semantics

import "slices"

// Option describes one option of entities. What depends on the options walks these descriptions, so that a new option
// is a row of the table and needs no code of its own.
type Option struct {
	Name      string // in the API
	Immutable bool   // can be set at creation only (ENT-16)
	Value     OptionValue

	kinds kinds
}

// kinds is a set of kinds of entities.
type kinds uint8

const (
	ofQueue        kinds = 1 << QueueKind
	ofTopic        kinds = 1 << TopicKind
	ofSubscription kinds = 1 << SubscriptionKind

	ofTarget = ofQueue | ofTopic
	ofSource = ofQueue | ofSubscription
	ofAll    = ofQueue | ofTopic | ofSubscription
)

// AllOptions returns the options of all kinds, in the order of the API. The caller must not change it, nor what the
// functions below return.
func AllOptions() []Option { return optionTable }

// OptionsOf returns the options of a kind, in the order of the API.
func OptionsOf(kind Kind) []Option { return optionsOfKind[kind] }

// OptionNames returns the names of OptionsOf.
func OptionNames(kind Kind) []string { return optionNames[kind] }

// OptionNamed returns the option of that name, and reports whether there is one.
func OptionNamed(name string) (Option, bool) {
	option, ok := optionsByName[name]
	return option, ok
}

// Immutable reports whether the named option can be set at creation only (ENT-16).
func Immutable(option string) bool { return optionsByName[option].Immutable }

// MayBeNever reports whether the named option is a duration that may be Never.
func MayBeNever(option string) bool {
	duration, ok := optionsByName[option].Value.(DurationOption)
	return ok && duration.Max == Never
}

var (
	optionsByName = byName(optionTable)
	optionsOfKind = [...][]Option{
		QueueKind:        having(ofQueue),
		TopicKind:        having(ofTopic),
		SubscriptionKind: having(ofSubscription),
	}
	optionNames = [...][]string{
		QueueKind:        namesOf(having(ofQueue)),
		TopicKind:        namesOf(having(ofTopic)),
		SubscriptionKind: namesOf(having(ofSubscription)),
	}
)

func byName(options []Option) map[string]Option {
	named := make(map[string]Option, len(options))
	for _, option := range options {
		named[option.Name] = option
	}
	return named
}

func having(kind kinds) (options []Option) {
	for _, option := range optionTable {
		if option.kinds&kind != 0 {
			options = append(options, option)
		}
	}
	return options
}

func namesOf(options []Option) (names []string) {
	for _, option := range options {
		names = append(names, option.Name)
	}
	return names
}

// CheckOptionNames refuses names that are not options of the kind: INVALID_ARGUMENT.
func CheckOptionNames(kind Kind, names []string) error {
	for _, name := range names {
		if !slices.Contains(optionNames[kind], name) {
			return InvalidField(name, "is not an option of a %s", kind)
		}
	}
	return nil
}
