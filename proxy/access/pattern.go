package access

import (
	"errors"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Pattern is the path of entities, where each "*" stands for any characters, none included. It covers the sub-queues of
// an entity, and the pattern of a topic its subscriptions (AUTH-2). No "*" reaches from a topic into the name of a
// subscription: who may create what ends with "-eu" must not subscribe to every topic under such a name. Only the
// pattern "*" covers what concerns the whole namespace, such as the list of queues.
type Pattern string

// ParsePattern returns a pattern, or an error that says what is wrong with it.
func ParsePattern(text string) (Pattern, error) {
	folded := semantics.Fold(strings.ReplaceAll(text, `\`, "/"))
	if folded == "" {
		return "", errors.New("is empty; write * for all entities")
	}
	example, parse := strings.ReplaceAll(folded, "*", "x"), semantics.ParsePath
	if _, _, is := semantics.SplitSubscription(example); is {
		parse = semantics.ParseSourcePath
	}
	if _, err := parse(example); err != nil {
		return "", semantics.AsError(err)
	}
	return Pattern(folded), nil
}

// matches reports whether the pattern covers a path, unchecked and not folded. The empty path is the whole namespace.
func (p Pattern) matches(path string) bool {
	if path == "" {
		return p == "*"
	}
	path = withoutSubQueue(semantics.Fold(path))
	topic, name, isSubscription := semantics.SplitSubscription(path)
	if !isSubscription {
		return covers(string(p), path)
	}
	ofTopics, ofNames, isOfSubscriptions := semantics.SplitSubscription(string(p))
	if !isOfSubscriptions {
		return covers(string(p), topic)
	}
	return covers(ofTopics, topic) && covers(ofNames, name)
}

// covers reports whether a pattern is a text, each "*" being any part of it.
func covers(pattern, text string) bool {
	first, rest, hasStar := strings.Cut(pattern, "*")
	text, found := strings.CutPrefix(text, first)
	if !found || !hasStar {
		return found && text == ""
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, last)
}
