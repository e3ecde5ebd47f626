package settings

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
)

// MaxDrainTimeout is the most that --drain-timeout may be.
const MaxDrainTimeout = time.Hour

// Bounds that several flags share.
const (
	minRedisTimeout = 10 * time.Millisecond
	maxRedisTimeout = 5 * time.Minute
)

// maxEntityMetrics is the most that --metrics-entities may be: each entity has about 15 series, and costs one call of a
// script each scrape.
const maxEntityMetrics = 10_000

// bounds are those of all flags with a number or a duration, except --max-entities, which has no upper one. The help
// texts and the errors take them from here.
func (s *Settings) bounds() []bound {
	return append([]bound{
		within("max-connections", s.MaxConnections, 10, 1_000_000, strconv.Itoa),
		ofEntityMetrics(s.EntityMetrics),
		within("drain-timeout", s.DrainTimeout, 0, MaxDrainTimeout, duration.Text),
		within("rate-limit", s.RateLimit, 0.1, 1_000_000, decimalText).orZero("no limit", s.RateLimit == 0),
		within("forward-retry", s.ForwardRetry, 0, 24*time.Hour, duration.Text),
	}, s.StoreSettings.bounds()...)
}

// bounds are those of the flags with a number or a duration.
func (s *StoreSettings) bounds() []bound {
	return []bound{
		within("durability-replicas", s.DurabilityReps, 1, 10, strconv.Itoa),
		within("durability-timeout", s.DurabilityWait, time.Millisecond, 30*time.Second, duration.Text),
		within("redis-pool-size", s.RedisPoolSize, 1, 1000, strconv.Itoa),
		within("redis-dial-timeout", s.RedisDialTimeout, minRedisTimeout, maxRedisTimeout, duration.Text),
		within("redis-read-timeout", s.RedisReadTimeout, minRedisTimeout, maxRedisTimeout, duration.Text),
		within("redis-write-timeout", s.RedisWriteTimeout, minRedisTimeout, maxRedisTimeout, duration.Text),
	}
}

func ofEntityMetrics(n int) bound {
	return within("metrics-entities", n, 0, maxEntityMetrics, strconv.Itoa)
}

// CheckEntityMetrics checks --metrics-entities alone.
func CheckEntityMetrics(n int) error { return ofEntityMetrics(n).check() }

// bound is what the value of a flag must be within.
type bound struct {
	flag, value string
	span        string // such as "1 to 1000"
	zero        string // what 0 means if it is permitted beside the span
	holds       bool
}

// within is a bound of which both ends are permitted. No NaN holds.
func within[T cmp.Ordered](flag string, value, least, most T, text func(T) string) bound {
	return bound{
		flag: flag, value: text(value), span: text(least) + " to " + text(most), holds: value >= least && value <= most,
	}
}

func (b bound) orZero(meaning string, isZero bool) bound {
	b.zero, b.holds = "0 ("+meaning+") or ", b.holds || isZero
	return b
}

func (b bound) check() error {
	if b.holds {
		return nil
	}
	return Bad(b.flag, "is %s, must be %s%s", b.value, b.zero, b.span)
}

// spans are the words with which a help text names the bounds of a flag: ${span_drain_timeout} for --drain-timeout.
func spans() kong.Vars {
	words := kong.Vars{}
	for _, b := range (&Settings{}).bounds() {
		words["span_"+strings.ReplaceAll(b.flag, "-", "_")] = b.span
	}
	return words
}

// decimalText writes a number without an exponent.
func decimalText(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
