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

// ParsePath checks the path of a queue or topic and returns it with \ turned into / (ENT-3, ENT-5). The path
// keeps its case; entities are looked up by Fold of it (ENT-4). A path that breaks a rule is INVALID_ARGUMENT.
func ParsePath(path string) (string, error) {
	path = strings.ReplaceAll(path, `\`, "/")
	bad := func(format string, args ...any) (string, error) {
		return "", InvalidField("name", format, args...)
	}
	switch {
	case path == "":
		return bad("must not be empty")
	case len(path) > MaxPathLength:
		return bad("is %d characters long, at most %d are allowed", len(path), MaxPathLength)
	}
	for i, r := range path {
		if r != '/' && !isNameChar(r) {
			return bad(
				"%q has %q at position %d; letters, digits, '.', '-', '_' and '/' are allowed", Shorten(path), r, i+1,
			)
		}
	}
	if !isAlphanumeric(path[0]) || !isAlphanumeric(path[len(path)-1]) {
		return bad("%q must start and end with a letter or digit", Shorten(path))
	}
	isFirst := true
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" {
			return bad("%q has an empty segment", Shorten(path))
		}
		if !isFirst && strings.EqualFold(segment, "subscriptions") {
			return bad(
				"%q has the reserved segment %q; a subscription is topics/{topic}/subscriptions/{subscription}",
				Shorten(path), segment,
			)
		}
		isFirst = false
	}
	return path, nil
}

// subscriptionsSegment stands between the path of a topic and the name of one of its subscriptions.
const subscriptionsSegment = "/Subscriptions/"

// SubscriptionPath is the path of a subscription: "news/Subscriptions/eu".
func SubscriptionPath(topic, name string) string { return topic + subscriptionsSegment + name }

// SplitSubscription takes the path of a subscription apart; ok is false for any other path.
func SplitSubscription(path string) (topic, name string, ok bool) {
	end := strings.LastIndexByte(path, '/') + 1
	begin := end - len(subscriptionsSegment)
	if begin < 0 || !strings.EqualFold(path[begin:end], subscriptionsSegment) { // of as many bytes, so of ASCII only
		return "", "", false
	}
	return path[:begin], path[end:], true
}

// ParseSourcePath checks the path of a queue or of a subscription, and returns it as ParsePath does.
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
		return InvalidField(
			field, "must be 1 to %d characters long, %q has %d", MaxNameLength, Shorten(name), len(name),
		)
	}
	for i, r := range name {
		if !isNameChar(r) {
			return InvalidField(
				field, "%q has %q at position %d; letters, digits, '.', '-' and '_' are allowed", Shorten(name), r, i+1,
			)
		}
	}
	if !isAlphanumeric(name[0]) || !isAlphanumeric(name[len(name)-1]) {
		return InvalidField(field, "%q must start and end with a letter or digit", Shorten(name))
	}
	return nil
}

// ParseNamespace checks a namespace: 1 to 64 letters, digits, '.', '-' or '_'.
func ParseNamespace(name string) (string, error) {
	if name == "" || len(name) > MaxNamespaceLength {
		return "", InvalidField("namespace", "must be 1 to %d characters long", MaxNamespaceLength)
	}
	for _, r := range name {
		if !isNameChar(r) {
			return "", InvalidField("namespace", "has %q; letters, digits, '.', '-' and '_' are allowed", r)
		}
	}
	return name, nil
}

// Fold returns the form under which a name is looked up and compared (ENT-4).
func Fold(name string) string { return strings.ToLower(name) }

func isNameChar(r rune) bool {
	return r < 0x80 && (isAlphanumeric(byte(r)) || r == '.' || r == '-' || r == '_')
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// ParsePrefix checks the beginning of a name and returns it folded.
func ParsePrefix(prefix string) (string, error) {
	prefix = strings.ReplaceAll(prefix, `\`, "/")
	for i, r := range prefix {
		if r != '/' && !isNameChar(r) {
			return "", InvalidField("namePrefix", "has %q at position %d, which no name has", r, i+1)
		}
	}
	return Fold(prefix), nil
}
