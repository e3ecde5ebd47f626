package semantics

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// OptionValue is where the value of an option is, and which values are permitted: a DurationOption, IntegerOption,
// BoolOption, WordOption or TextOption.
type OptionValue interface {
	reset(o *Options)
	take(from, into *Options)
	text(o *Options) string
	check(name string, o *Options) error
}

// place is where Options have a value, and its default.
type place[T any] struct {
	At      func(o *Options) *T
	Default T
}

func (p place[T]) reset(o *Options) { *p.At(o) = p.Default }

func (p place[T]) take(from, into *Options) { *p.At(into) = *p.At(from) }

func (p place[T]) text(o *Options) string { return fmt.Sprint(*p.At(o)) }

// DurationOption is an option that is a duration. It may be Never if Max is.
type DurationOption struct {
	place[time.Duration]

	Min, Max time.Duration
}

func durationAt(at func(o *Options) *time.Duration, initial, least, most time.Duration) DurationOption {
	return DurationOption{place[time.Duration]{at, initial}, least, most}
}

func (d DurationOption) text(o *Options) string {
	value := *d.At(o)
	if value == Never {
		return "never"
	}
	return strconv.FormatFloat(value.Seconds(), 'f', -1, 64) + "s"
}

func (d DurationOption) check(name string, o *Options) error {
	switch value := *d.At(o); {
	case value >= d.Min && value <= d.Max:
		return nil
	case d.Max == Never:
		return FieldError(ArgumentOutOfRange, name, "is %s, must be at least %s", value, d.Min)
	default:
		return FieldError(ArgumentOutOfRange, name, "is %s, must be %s to %s", value, d.Min, d.Max)
	}
}

// IntegerOption is an option that is a whole number. If Min is 0, 0 means that there is no bound.
type IntegerOption struct {
	place[int64]

	Min, Max int64
}

func integerAt(at func(o *Options) *int64, initial, least, most int64) IntegerOption {
	return IntegerOption{place[int64]{at, initial}, least, most}
}

func (i IntegerOption) check(name string, o *Options) error {
	if value := *i.At(o); value < i.Min || value > i.Max {
		return FieldError(ArgumentOutOfRange, name, "is %d, must be %d to %d", value, i.Min, i.Max)
	}
	return nil
}

// BoolOption is an option that is on or off.
type BoolOption struct{ place[bool] }

func boolAt(at func(o *Options) *bool, initial bool) BoolOption {
	return BoolOption{place[bool]{at, initial}}
}

func (BoolOption) check(string, *Options) error { return nil }

// TextOption is an option that is a text, or the path of a queue or topic, which ParseDestinations checks.
type TextOption struct {
	place[string]

	IsPath bool
	Max    int // UTF-16 units of a text
}

func textAt(at func(o *Options) *string, most int) TextOption {
	return TextOption{place: place[string]{At: at}, Max: most}
}

func pathAt(at func(o *Options) *string) TextOption {
	return TextOption{place: place[string]{At: at}, IsPath: true}
}

func (t TextOption) check(name string, o *Options) error {
	value := *t.At(o)
	switch n := UTF16Length(value); {
	case t.IsPath:
		return nil
	case !utf8.ValidString(value):
		return InvalidField(name, "must be valid UTF-8")
	case n > t.Max:
		return FieldError(ArgumentOutOfRange, name, "is %d characters long, at most %d are allowed", n, t.Max)
	default:
		return nil
	}
}

// WordOption is an option that is one of some words. Get and Set use the number of a word, as Options do. The default
// is the first word.
type WordOption struct {
	Words []string
	Get   func(o *Options) uint8
	Set   func(o *Options, value uint8)
	Text  func(o *Options) string
}

type word interface {
	~uint8
	fmt.Stringer
}

func wordAt[T word](at func(o *Options) *T, words []string) WordOption {
	return WordOption{
		Words: words,
		Get:   func(o *Options) uint8 { return uint8(*at(o)) },
		Set:   func(o *Options, value uint8) { *at(o) = T(value) },
		Text:  func(o *Options) string { return (*at(o)).String() },
	}
}

func (w WordOption) reset(o *Options) { w.Set(o, 0) }

func (w WordOption) take(from, into *Options) { w.Set(into, w.Get(from)) }

func (w WordOption) text(o *Options) string { return w.Text(o) }

func (w WordOption) check(name string, o *Options) error {
	if int(w.Get(o)) >= len(w.Words) {
		return InvalidField(name, "must be one of %s", strings.Join(w.Words, ", "))
	}
	return nil
}
