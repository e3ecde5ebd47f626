package semantics

import (
	"slices"
	"strings"
)

// DestinationOptions returns the names of the options that say where messages are forwarded to.
func DestinationOptions() []string { return destinationOptions }

var destinationOptions = func() (names []string) {
	for _, option := range optionTable {
		if text, ok := option.Value.(TextOption); ok && text.IsPath {
			names = append(names, option.Name)
		}
	}
	return names
}()

// Destination returns the path that one of the DestinationOptions holds.
func (o Options) Destination(name string) string { return *o.destination(name) }

func (o *Options) destination(name string) *string {
	return optionsByName[name].Value.(TextOption).At(o)
}

// ParseDestinations checks the paths that the named options hold, as far as that needs no entity, and returns them as
// ParsePath does.
func (o Options) ParseDestinations(names []string) (Options, error) {
	for _, field := range destinationOptions {
		path := o.destination(field)
		if *path == "" || !slices.Contains(names, field) {
			continue
		}
		given := strings.ReplaceAll(*path, `\`, "/")
		if topic, _, ok := SplitSubscription(given); ok {
			return o, BadDestination(
				field, "must not be a subscription; forward to a queue or to the topic %q", Shorten(topic),
			)
		}
		parsed, err := ParsePath(given)
		if err != nil {
			return o, InvalidField(field, "is not the path of a queue or topic: %s", AsError(err).Message)
		}
		*path = parsed
	}
	return o, nil
}

// BadDestination is FORWARD_DESTINATION_INVALID for one of the DestinationOptions (ENT-13).
func BadDestination(field, format string, args ...any) *Error {
	return FieldError(ForwardDestinationInvalid, field, format, args...)
}
