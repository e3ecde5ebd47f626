package dapr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// settings are the settings in the metadata of a component, overridden by those of a subscription.
type settings struct {
	kind     semantics.Kind // whether a topic of Dapr is a topic or a queue
	consumer string         // name of the subscriptions of topics
	manages  bool           // create missing entities
	timeout  time.Duration  // of a call

	handlerTimeout  time.Duration // how long the app may work on a message; 0: without a limit
	renews          bool          // renew the locks of messages in flight
	maxActive       int           // messages in flight at a time
	maxHandlers     int           // messages that the app works on at a time; 0: all in flight
	firstRedelivery time.Duration // pause after the first failure, which doubles with each
	maxRedelivery   time.Duration

	requireSessions bool
	sessionIdle     time.Duration
	maxSessions     int

	options semantics.Options // of entities that are made
	given   []string          // names of the options that are set
}

// level is where a name of metadata has an effect.
type level uint8

const (
	atComponent    level = 1 << iota
	atSubscription       // where it overrides the component's
	anywhere       = atComponent | atSubscription
)

// setting is a name of metadata. Names are not case-sensitive, as in Dapr.
type setting struct {
	name    string
	aliases []string
	at      level
	read    func(*settings, string) error // nil: the name is Dapr's or another component's and has no effect here
}

// knownSettings are all names of metadata. docs/dapr.md explains them; a test compares.
var knownSettings = []setting{
	{name: "entityKind", at: atComponent, read: readKind},
	{name: "consumerID", at: atComponent, read: func(s *settings, text string) error { s.consumer = text; return nil }},
	{name: "disableEntityManagement", at: atComponent, read: flag(func(s *settings, on bool) { s.manages = !on })},
	{
		name: "timeoutInSec",
		at:   atComponent,
		read: seconds(1, 3600, func(s *settings, d time.Duration) { s.timeout = d }),
	},

	{
		name: "handlerTimeoutInSec",
		at:   anywhere,
		read: seconds(0, 86400, func(s *settings, d time.Duration) { s.handlerTimeout = d }),
	},
	{
		name: "processingTimeout",
		at:   anywhere,
		read: span(0, stream.MaxAutoRenew, func(s *settings, d time.Duration) { s.handlerTimeout = d }),
	},
	{
		name: "lockRenewalInSec",
		at:   anywhere,
		read: seconds(0, 86400, func(s *settings, d time.Duration) { s.renews = d > 0 }),
	},
	{
		name:    "maxActiveMessages",
		aliases: []string{"queueDepth"},
		at:      anywhere,
		read: count(1, math.MaxInt32, func(s *settings, n int) {
			s.maxActive = min(n, stream.MaxCredits)
		}),
	},
	{
		name:    "maxConcurrentHandlers",
		aliases: []string{"concurrency"},
		at:      anywhere,
		read: count(0, math.MaxInt32, func(s *settings, n int) {
			s.maxHandlers = min(n, stream.MaxCredits)
		}),
	},
	{name: "maxRetriableErrorsPerSec", at: anywhere, read: count(0, 1000, func(s *settings, n int) {
		s.firstRedelivery = 0
		if n > 0 {
			s.firstRedelivery = time.Second / time.Duration(n)
		}
	})},
	{
		name: "redeliverInterval",
		at:   anywhere,
		read: span(
			0, semantics.MaxDelay,
			func(s *settings, d time.Duration) { s.firstRedelivery, s.maxRedelivery = d, d },
		),
	},
	{
		name: "redeliveryDelayInMs",
		at:   anywhere,
		read: milliseconds(0, semantics.MaxDelay, func(s *settings, d time.Duration) { s.firstRedelivery = d }),
	},
	{
		name: "maxRedeliveryDelayInSec",
		at:   anywhere,
		read: seconds(
			0, int(semantics.MaxDelay/time.Second),
			func(s *settings, d time.Duration) { s.maxRedelivery = d },
		),
	},

	{name: "requireSessions", at: anywhere, read: flag(func(s *settings, on bool) { s.requireSessions = on })},
	{
		name: "sessionIdleTimeoutInSec",
		at:   anywhere,
		read: seconds(
			1, int(stream.MaxSessionIdle/time.Second),
			func(s *settings, d time.Duration) { s.sessionIdle = d },
		),
	},
	{
		name: "maxConcurrentSessions",
		at:   anywhere,
		read: count(1, semantics.MaxConcurrentSession, func(s *settings, n int) { s.maxSessions = n }),
	},

	{name: "maxDeliveryCount", at: anywhere, read: count(1, math.MaxInt32, func(s *settings, n int) {
		s.option("maxDeliveryCount", func(o *semantics.Options) { o.MaxDeliveryCount = int64(n) })
	})},
	{name: "lockDurationInSec", at: anywhere, read: seconds(5, 300, func(s *settings, d time.Duration) {
		s.option("lockDuration", func(o *semantics.Options) { o.LockDuration = d })
	})},
	{
		name:    "defaultMessageTimeToLiveInSec",
		aliases: []string{"ttlInSeconds", "ttl"},
		at:      anywhere,
		read:    seconds(1, math.MaxInt32, setTimeToLive),
	},
	{name: "streamTTL", at: anywhere, read: span(time.Second, math.MaxInt32*time.Second, setTimeToLive)},
	{name: "autoDeleteOnIdleInSec", at: anywhere, read: seconds(300, math.MaxInt32, func(s *settings, d time.Duration) {
		s.option("autoDeleteOnIdle", func(o *semantics.Options) { o.AutoDeleteOnIdle = d })
	})},
	{name: "deadLetteringOnMessageExpiration", at: anywhere, read: flag(func(s *settings, on bool) {
		s.option(
			"deadLetteringOnMessageExpiration",
			func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = on },
		)
	})},
	{name: "requiresDuplicateDetection", at: atComponent, read: flag(func(s *settings, on bool) {
		s.option("requiresDuplicateDetection", func(o *semantics.Options) { o.RequiresDuplicateDetection = on })
	})},
	{
		name: "duplicateDetectionHistoryTimeWindowInSec",
		at:   atComponent,
		read: seconds(20, 604800, func(s *settings, d time.Duration) {
			s.option(
				"duplicateDetectionHistoryTimeWindow",
				func(o *semantics.Options) { o.DuplicateDetectionHistoryTimeWindow = d },
			)
		}),
	},

	// Checked, so that an invalid value is reported, but without effect: Sidebus retries in its own way.
	{name: "publishMaxRetries", at: atComponent, read: count(0, math.MaxInt32, func(*settings, int) {})},
	{
		name:    "publishInitialRetryIntervalInMs",
		aliases: []string{"publishInitialRetryInternalInMs"},
		at:      atComponent,
		read:    count(0, math.MaxInt32, func(*settings, int) {}),
	},
	{name: "minConnectionRecoveryInSec", at: atComponent, read: count(0, math.MaxInt32, func(*settings, int) {})},
	{name: "maxConnectionRecoveryInSec", at: atComponent, read: count(0, math.MaxInt32, func(*settings, int) {})},
}

// foreignNames are names of the Dapr runtime, and names by which the components of Azure Service Bus and of Redis find
// their servers. A Component that was written for these may have them; they have no effect here.
var foreignNames = []string{
	"allowedTopics", "protectedTopics", "publishingScopes", "subscriptionScopes", "rawPayload", "isRawPayload",
	"concurrencyMode",

	"connectionString", "namespaceName",

	"redisHost", "redisPort", "redisUsername", "redisPassword", "redisDB", "redisType", "redisMaxRetries",
	"redisMinRetryInterval",
	"redisMaxRetryInterval", "failover", "sentinelMasterName", "sentinelUsername", "sentinelPassword", "enableTLS",
	"insecureSkipTLSVerify",
	"clientCert", "clientKey", "useEntraID", "dialTimeout", "readTimeout", "writeTimeout", "poolSize", "poolTimeout",
	"maxConnAge",
	"minIdleConns", "idleCheckFrequency", "idleTimeout", "maxLenApprox",
}

// foreignPrefixes are the prefixes of names by which the components of Azure authenticate.
var foreignPrefixes = []string{"azure", "spn"}

func setTimeToLive(s *settings, d time.Duration) {
	s.option("defaultMessageTimeToLive", func(o *semantics.Options) { o.DefaultMessageTimeToLive = d })
}

// option sets an option of entities that are created.
func (s *settings) option(name string, set func(*semantics.Options)) {
	set(&s.options)
	if !slices.Contains(s.given, name) {
		s.given = append(slices.Clip(s.given), name)
	}
}

// badValue is an invalid value of metadata.
type badValue struct{ name, text string }

// apply returns the settings with the metadata of a level applied, the names that are unknown or not permitted at that
// level, and the invalid values. Unknown names and invalid values change no setting.
func (s settings) apply(metadata map[string]string, at level) (changed settings, unknown []string, wrong []badValue) {
	for _, name := range sortedNames(metadata) {
		text := strings.TrimSpace(metadata[name])
		known, isKnown := findSetting(name)
		switch {
		case !isKnown && !isForeign(name), isKnown && known.at&at == 0:
			unknown = append(unknown, name)
		case !isKnown || text == "":
		default:
			next := s
			if err := known.read(&next, text); err != nil {
				wrong = append(wrong, badValue{name, err.Error()})
				continue
			}
			s = next
		}
	}
	return s, unknown, wrong
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func findSetting(name string) (setting, bool) {
	isName := func(other string) bool { return strings.EqualFold(other, name) }
	for _, s := range knownSettings {
		if isName(s.name) || slices.ContainsFunc(s.aliases, isName) {
			return s, true
		}
	}
	return setting{}, false
}

func isForeign(name string) bool {
	isPrefix := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(name), prefix) }
	return slices.ContainsFunc(foreignNames, func(other string) bool { return strings.EqualFold(other, name) }) ||
		slices.ContainsFunc(foreignPrefixes, isPrefix)
}

func readKind(s *settings, text string) error {
	switch strings.ToLower(text) {
	case "topic":
		s.kind = semantics.TopicKind
	case "queue":
		s.kind = semantics.QueueKind
	default:
		return fmt.Errorf("is %q, must be topic or queue", semantics.Shorten(text))
	}
	return nil
}

var (
	yesWords = []string{"y", "yes", "true", "t", "on", "1"}
	noWords  = []string{"n", "no", "false", "f", "off", "0"}
)

// readBool parses a boolean in the words that Dapr's components accept.
func readBool(text string) (bool, error) {
	isWord := func(word string) bool { return strings.EqualFold(word, text) }
	switch {
	case slices.ContainsFunc(yesWords, isWord):
		return true, nil
	case slices.ContainsFunc(noWords, isWord):
		return false, nil
	default:
		return false, fmt.Errorf("is %q, must be true or false", semantics.Shorten(text))
	}
}

func flag(set func(*settings, bool)) func(*settings, string) error {
	return func(s *settings, text string) error {
		on, err := readBool(text)
		if err == nil {
			set(s, on)
		}
		return err
	}
}

func count(low, high int, set func(*settings, int)) func(*settings, string) error {
	return func(s *settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("is %q, must be a whole number from %d to %d", semantics.Shorten(text), low, high)
		}
		if n < low || n > high {
			return fmt.Errorf("is %d, must be %d to %d", n, low, high)
		}
		set(s, n)
		return nil
	}
}

func seconds(low, high int, set func(*settings, time.Duration)) func(*settings, string) error {
	return spanOf(time.Second, time.Duration(low)*time.Second, time.Duration(high)*time.Second, "seconds", set)
}

func milliseconds(low, high time.Duration, set func(*settings, time.Duration)) func(*settings, string) error {
	return spanOf(time.Millisecond, low, high, "milliseconds", set)
}

// span reads a duration as the component of Redis does: a bare number is in milliseconds.
func span(low, high time.Duration, set func(*settings, time.Duration)) func(*settings, string) error {
	return spanOf(time.Millisecond, low, high, "milliseconds", set)
}

// spanOf reads a duration: a bare number of units, or one like 1m30s.
func spanOf(
	unit, low, high time.Duration, units string, set func(*settings, time.Duration),
) func(*settings, string) error {
	return func(s *settings, text string) error {
		d, err := readSpan(text, unit)
		if err != nil {
			return fmt.Errorf("is %q, must be a number of %s or a duration like 1m30s", semantics.Shorten(text), units)
		}
		if d < low || d > high {
			return fmt.Errorf("is %s, must be %s to %s", d, low, high)
		}
		set(s, d)
		return nil
	}
}

// readSpan parses a bare number of units, or a duration like 1m30s. A number beyond the range of time.Duration becomes
// the nearest value in the range.
func readSpan(text string, unit time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return time.ParseDuration(text)
	case n > int64(math.MaxInt64/unit):
		return math.MaxInt64, nil
	case n < int64(math.MinInt64/unit):
		return math.MinInt64, nil
	default:
		return time.Duration(n) * unit, nil
	}
}
