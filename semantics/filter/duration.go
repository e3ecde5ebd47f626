package filter

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Texts that stand for timespans are those of the API: Go syntax ("1m30s") and ISO-8601 without years and months
// ("PT1M30S").
const (
	amount       = `(?:\d+(?:\.\d*)?|\.\d+)`
	maxSpanBytes = 64
)

var (
	goSpan  = regexp.MustCompile(`^[+-]?(?:0|(?:` + amount + `(?:ns|us|µs|μs|ms|s|m|h))+)$`)
	goPart  = regexp.MustCompile(`(` + amount + `)(ns|us|µs|μs|ms|s|m|h)`)
	isoSpan = regexp.MustCompile(
		`^[+-]?P(?:` + amount + `W)?(?:` + amount + `D)?(?:T(?:` + amount + `H)?(?:` + amount + `M)?(?:` + amount + `S)?)?$`,
	)
	isoPart  = regexp.MustCompile(`(` + amount + `)([WDHMS])`)
	unitSize = map[string]time.Duration{
		"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour,
		"S": time.Second, "M": time.Minute, "H": time.Hour, "D": 24 * time.Hour, "W": 7 * 24 * time.Hour,
	}
)

// parseSpan reads a text as ticks. It is false for a text that is not a duration, and for one that ticks cannot hold
// exactly.
func parseSpan(s string) (ticks int64, ok bool) {
	if len(s) > maxSpanBytes {
		return 0, false
	}
	if d, err := time.ParseDuration(s); err == nil &&
		!strings.Contains(s, ".") { // the usual ones; a fraction might be rounded
		return int64(d / tick), d%tick == 0
	}
	var parts [][]string
	switch {
	case goSpan.MatchString(s):
		parts = goPart.FindAllStringSubmatch(s, -1)
	case isoSpan.MatchString(s):
		if parts = isoPart.FindAllStringSubmatch(s, -1); len(parts) == 0 || strings.HasSuffix(s, "T") {
			return 0, false
		}
	default:
		return 0, false
	}
	sum := new(big.Rat)
	for _, part := range parts {
		number, _ := new(big.Rat).SetString(part[1]) // the expression takes digits and one point
		sum.Add(sum, number.Mul(number, big.NewRat(int64(unitSize[part[2]]), int64(tick))))
	}
	if strings.HasPrefix(s, "-") {
		sum.Neg(sum)
	}
	return sum.Num().Int64(), sum.IsInt() && sum.Num().IsInt64()
}

// formatSpan writes ticks as the API does, in seconds: "90s", "-0.5s".
func formatSpan(ticks int64) string {
	sign, abs := "", uint64(ticks)
	if ticks < 0 {
		sign, abs = "-", -abs
	}
	text := sign + strconv.FormatUint(abs/uint64(ticksPerSecond), 10)
	if rest := abs % uint64(ticksPerSecond); rest != 0 {
		text += "." + strings.TrimRight(strconv.FormatUint(uint64(ticksPerSecond)+rest, 10)[1:], "0")
	}
	return text + "s"
}
