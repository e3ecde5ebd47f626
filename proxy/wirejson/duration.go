package wirejson

import (
	"math/big"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	decimal      = `(?:\d+(?:\.\d*)?|\.\d+)`
	maxDuration  = 64              // characters
	maxPBSeconds = 315_576_000_000 // the bound of google.protobuf.Duration, 10,000 years
)

var (
	goDuration  = regexp.MustCompile(`^[+-]?(?:0|(?:` + decimal + `(?:ns|us|µs|μs|ms|s|m|h))+)$`)
	goPart      = regexp.MustCompile(`(` + decimal + `)(ns|us|µs|μs|ms|s|m|h)`)
	isoDuration = regexp.MustCompile(
		`^[+-]?P(?:` + decimal + `W)?(?:` + decimal + `D)?(?:T(?:` + decimal + `H)?(?:` + decimal + `M)?(?:` + decimal + `S)?)?$`,
	)
	isoPart = regexp.MustCompile(`(` + decimal + `)([WDHMS])`)

	units = map[string]time.Duration{
		"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour,
		"S": time.Second, "M": time.Minute, "H": time.Hour, "D": 24 * time.Hour, "W": 7 * 24 * time.Hour,
	}
)

// parseNanos parses a duration in Go syntax ("1m30s") or ISO-8601 ("PT1M30S", without years and months) and returns
// exact nanoseconds. It rejects a finer resolution.
func parseNanos(s string) (*big.Int, bool) {
	if len(s) > maxDuration {
		return nil, false
	}
	var parts [][]string
	switch {
	case goDuration.MatchString(s):
		parts = goPart.FindAllStringSubmatch(s, -1)
	case isoDuration.MatchString(s):
		if parts = isoPart.FindAllStringSubmatch(s, -1); len(parts) == 0 || strings.HasSuffix(s, "T") {
			return nil, false
		}
	default:
		return nil, false
	}
	sum := new(big.Rat)
	for _, part := range parts {
		number, ok := new(big.Rat).SetString(part[1])
		if !ok {
			return nil, false
		}
		sum.Add(sum, number.Mul(number, new(big.Rat).SetInt64(int64(units[part[2]]))))
	}
	if !sum.IsInt() {
		return nil, false
	}
	if strings.HasPrefix(s, "-") {
		sum.Neg(sum)
	}
	return sum.Num(), true
}

// ParseDuration parses a duration in Go syntax ("1m30s") or ISO-8601 ("PT1M30S"), and reports whether it is valid. It
// reduces a duration beyond google.protobuf.Duration, such as the longest of Service Bus, to the maximum, which also
// means "never".
func ParseDuration(s string) (*durationpb.Duration, bool) {
	nanos, ok := parseNanos(s)
	if !ok {
		return nil, false
	}
	seconds, rest := new(big.Int).QuoRem(nanos, big.NewInt(int64(time.Second)), new(big.Int))
	limit := big.NewInt(maxPBSeconds)
	if seconds.CmpAbs(limit) >= 0 {
		return &durationpb.Duration{Seconds: int64(seconds.Sign()) * maxPBSeconds}, true
	}
	return &durationpb.Duration{
		Seconds: seconds.Int64(),
		Nanos:   int32(rest.Int64()),
	}, true //nolint:gosec // less than a second
}

// ticksPerSecond is the resolution of a timespan: 100 ns.
const ticksPerSecond = int64(time.Second / 100)

// parseTicks parses a duration as ticks of a timespan. It returns false for one that a timespan cannot hold exactly.
func parseTicks(s string) (int64, bool) {
	nanos, ok := parseNanos(s)
	if !ok {
		return 0, false
	}
	ticks, rest := new(big.Int).QuoRem(nanos, big.NewInt(100), new(big.Int))
	return ticks.Int64(), rest.Sign() == 0 && ticks.IsInt64()
}

// appendSeconds appends a duration in seconds with as many digits as it needs, "90s" or "0.5s". whole and part have the
// same sign; part counts fractions of a second of which digits make one decimal place each.
func appendSeconds(to []byte, whole, part int64, digits int) []byte {
	if whole < 0 || part < 0 {
		to = append(to, '-')
	}
	to = new(big.Int).Abs(big.NewInt(whole)).Append(to, 10)
	if part != 0 {
		if part < 0 {
			part = -part
		}
		fraction := make([]byte, digits)
		for i := digits - 1; i >= 0; i-- {
			fraction[i] = byte('0' + part%10)
			part /= 10
		}
		to = append(to, '.')
		to = append(to, strings.TrimRight(string(fraction), "0")...)
	}
	return append(to, 's')
}
