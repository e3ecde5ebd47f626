package scaler

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proto/externalscaler"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// Keys of the metadata of a trigger.
const (
	sourceKey   = "source"
	subQueueKey = "subQueue"
	messagesKey = "messages"
	sessionsKey = "sessions"
	maxAgeKey   = "maxAge"
)

// keysOfKEDA are those that KEDA reads itself and passes on.
var keysOfKEDA = []string{
	"scalerAddress", "enableTLS", "unsafeSsl", "tlsCertFile", "caCert", "tlsClientCert", "tlsClientKey",
}

// Bounds of the metadata.
const (
	maxPerReplica = 1_000_000_000
	minMaxAge     = time.Second
	maxMaxAge     = 365 * 24 * time.Hour
)

// trigger is what the metadata of a ScaledObject asks for.
type trigger struct {
	source  semantics.Source
	targets []target // at least one
}

// target is how much of a metric one replica is for.
type target struct {
	metric Metric
	value  float64
}

// scalesBy reports whether a metric is asked for.
func (t trigger) scalesBy(m Metric) bool {
	return slices.ContainsFunc(t.targets, func(of target) bool { return of.metric == m })
}

// parse reads the metadata of a trigger. An error names the key. A key that is not known is refused, because a
// misspelt one would scale by less than was asked for.
func parse(ref *externalscaler.ScaledObjectRef) (t trigger, err error) {
	metadata := ref.GetScalerMetadata()
	known := append([]string{sourceKey, subQueueKey, messagesKey, sessionsKey, maxAgeKey}, keysOfKEDA...)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains(known, key) {
			return t, semantics.InvalidField(
				semantics.Shorten(key), "is not known; use source, subQueue, messages, sessions and maxAge",
			)
		}
	}
	if t.source.Path, err = parseSource(metadata[sourceKey]); err != nil {
		return t, err
	}
	if t.source.SubQueue, err = parseSubQueue(metadata[subQueueKey]); err != nil {
		return t, err
	}
	for _, read := range []struct {
		key    string
		metric Metric
		parse  func(key, text string) (float64, error)
	}{{messagesKey, Messages, parseCount}, {sessionsKey, Sessions, parseCount}, {maxAgeKey, Age, parseAge}} {
		text, isGiven := metadata[read.key]
		if !isGiven {
			continue
		}
		if read.metric != Messages && t.source.SubQueue != semantics.MainQueue {
			return t, semantics.InvalidField(read.key, "is not for a dead-letter queue; use messages")
		}
		value, err := read.parse(read.key, text)
		if err != nil {
			return t, err
		}
		t.targets = append(t.targets, target{read.metric, value})
	}
	if len(t.targets) == 0 {
		return t, semantics.InvalidField(messagesKey, "is missing; give messages, sessions or maxAge")
	}
	return t, nil
}

// parseSource returns the path of a queue or subscription.
func parseSource(resource string) (path string, err error) {
	if name, ok := strings.CutPrefix(resource, "queues/"); ok {
		path, err = semantics.ParsePath(name)
	} else if name, ok := strings.CutPrefix(resource, "topics/"); ok && isSubscription(name) {
		path, err = semantics.ParseSourcePath(name)
	} else {
		return "", semantics.InvalidField(
			sourceKey, "is %q, must be queues/{queue} or topics/{topic}/subscriptions/{subscription}",
			semantics.Shorten(resource),
		)
	}
	if err != nil {
		return "", semantics.InvalidField(sourceKey, "is not valid: %s", semantics.AsError(err).Message)
	}
	return path, nil
}

func isSubscription(path string) bool {
	_, _, ok := semantics.SplitSubscription(path)
	return ok
}

func parseSubQueue(text string) (semantics.SubQueue, error) {
	if text == "" {
		return semantics.MainQueue, nil
	}
	if kind, ok := sidebusv1.SubQueue_Kind_value[text]; ok {
		if subQueue, isKnown := wire.SubQueueFrom(sidebusv1.SubQueue_Kind(kind)); isKnown {
			return subQueue, nil
		}
	}
	return semantics.MainQueue, semantics.InvalidField(
		subQueueKey, "is %q, must be NONE, DEAD_LETTER or TRANSFER_DEAD_LETTER", semantics.Shorten(text),
	)
}

func parseCount(key, text string) (float64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxPerReplica {
		return 0, semantics.InvalidField(key, "is %q, must be a whole number from 1 to %d", semantics.Shorten(text), maxPerReplica)
	}
	return float64(n), nil
}

func parseAge(key, text string) (float64, error) {
	age, err := time.ParseDuration(text)
	if err != nil || age < minMaxAge || age > maxMaxAge {
		return 0, semantics.InvalidField(
			key, "is %q, must be a duration such as 90s or 5m, from %s to %s", semantics.Shorten(text), minMaxAge, maxMaxAge,
		)
	}
	return age.Seconds(), nil
}
