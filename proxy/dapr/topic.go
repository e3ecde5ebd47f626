package dapr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// streamMark is followed by the number of a stream in the topic of a subscription, so that the streams of a
// subscription have different topics. The Dapr runtime opens one stream for each topic that an app subscribes to, and
// some versions pass on one message of a stream at a time. All streams receive from the same entity. A semicolon is not
// a character of paths (ENT-3), so no entity has such a name.
const streamMark = ";lane="

// withoutNumber returns the topic of a subscription without the number of its stream.
func withoutNumber(topic string) (string, error) {
	name, _, isNumbered := strings.Cut(topic, ";")
	if !isNumbered {
		return topic, nil
	}
	text, _ := strings.CutPrefix(topic[len(name):], streamMark)
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > maxStreams || strconv.Itoa(n) != text {
		return "", semantics.Errorf(
			semantics.InvalidArgument, "topic %q has a semicolon, so it must end with %sN, where N is 1 to %d",
			semantics.Shorten(topic), streamMark, maxStreams,
		).With(semantics.DetailField, "topic")
	}
	return name, nil
}

// refuseNumber refuses to publish to the number of a stream: what is published is for all streams of a subscription.
func refuseNumber(topic string) error {
	name, _, isNumbered := strings.Cut(topic, ";")
	if !isNumbered {
		return nil
	}
	return semantics.Errorf(
		semantics.InvalidArgument, "topic %q has a semicolon, which only a subscription may have; publish to %q",
		semantics.Shorten(topic), semantics.Shorten(name),
	).With(semantics.DetailField, "topic")
}

// deadLetterSuffix addresses the dead-letter queue of an entity, in any case (DLQ-2).
const deadLetterSuffix = "/$deadletterqueue"

// addressOf splits a topic name into the path and the sub-queue.
func addressOf(topic string) (path string, sub semantics.SubQueue) {
	path, isDead := cutSuffixFold(topic, deadLetterSuffix)
	if !isDead {
		return topic, semantics.MainQueue
	}
	if source, isTransfer := cutSuffixFold(path, "/$transfer"); isTransfer {
		return source, semantics.TransferDeadLetterQueue
	}
	return path, semantics.DeadLetterQueue
}

func cutSuffixFold(text, suffix string) (string, bool) {
	if n := len(text) - len(suffix); n > 0 && strings.EqualFold(text[n:], suffix) {
		return text[:n], true
	}
	return text, false
}

// sourceOf returns what a subscription to a topic receives from.
func sourceOf(topic string, s settings) (semantics.Source, error) {
	path, sub := addressOf(topic)
	if _, _, isSubscription := semantics.SplitSubscription(path); !isSubscription && s.kind == semantics.TopicKind {
		parsed, err := semantics.ParsePath(path)
		if err != nil {
			return semantics.Source{}, err
		}
		if s.consumer == "" {
			return semantics.Source{}, semantics.Errorf(
				semantics.InvalidArgument, "metadata consumerID is missing; it names the subscription of topic %q",
				semantics.Shorten(path),
			)
		}
		path = semantics.SubscriptionPath(parsed, s.consumer)
	}
	path, err := semantics.ParseSourcePath(path)
	if err != nil {
		return semantics.Source{}, fmt.Errorf("topic %q: %w", semantics.Shorten(topic), err)
	}
	return semantics.Source{Path: path, SubQueue: sub}, nil
}
