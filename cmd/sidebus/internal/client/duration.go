package client

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	decimal      = `(?:\d+(?:\.\d*)?|\.\d+)`
	mostDigits   = 64
	mostSeconds  = 315_576_000_000 // the bound of google.protobuf.Duration, 10,000 years
	durationForm = `a duration such as 30s, 1h30m, 7d or PT30S`
)

var (
	plainDuration = regexp.MustCompile(`^-?(?:` + decimal + `(?:ns|us|µs|μs|ms|s|m|h|d))+$`)
	plainPart     = regexp.MustCompile(`(` + decimal + `)(ns|us|µs|μs|ms|s|m|h|d)`)
	isoDuration   = regexp.MustCompile(`^-?P(?:` + decimal + `W)?(?:` + decimal + `D)?(?:T(?:` + decimal + `H)?(?:` + decimal + `M)?(?:` + decimal + `S)?)?$`)
	isoPart       = regexp.MustCompile(`(` + decimal + `)([WDHMS])`)

	units = map[string]time.Duration{
		"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
		"S": time.Second, "M": time.Minute, "H": time.Hour, "D": 24 * time.Hour, "W": 7 * 24 * time.Hour,
	}
)

// Duration reads a duration in Go's syntax, with "d" for days, or in ISO 8601, the form of Service Bus, without years and
// months. What is longer than google.protobuf.Duration holds is cut to that; it means "never" all the same.
func Duration(text string) (*durationpb.Duration, error) {
	nanos, ok := nanoseconds(text)
	if !ok {
		return nil, fmt.Errorf("is %q, must be %s", text, durationForm)
	}
	seconds, rest := new(big.Int).QuoRem(nanos, big.NewInt(int64(time.Second)), new(big.Int))
	if seconds.CmpAbs(big.NewInt(mostSeconds)) >= 0 {
		return &durationpb.Duration{Seconds: int64(seconds.Sign()) * mostSeconds}, nil
	}
	return &durationpb.Duration{Seconds: seconds.Int64(), Nanos: int32(rest.Int64())}, nil
}

func nanoseconds(text string) (*big.Int, bool) {
	var parts [][]string
	switch {
	case len(text) > mostDigits:
		return nil, false
	case text == "0":
		return new(big.Int), true
	case plainDuration.MatchString(text):
		parts = plainPart.FindAllStringSubmatch(text, -1)
	case isoDuration.MatchString(text) && !strings.HasSuffix(text, "T"):
		parts = isoPart.FindAllStringSubmatch(text, -1)
	}
	sum := new(big.Rat)
	for _, part := range parts {
		number, ok := new(big.Rat).SetString(part[1])
		if !ok {
			return nil, false
		}
		sum.Add(sum, number.Mul(number, new(big.Rat).SetInt64(int64(units[part[2]]))))
	}
	if strings.HasPrefix(text, "-") {
		sum.Neg(sum)
	}
	return sum.Num(), len(parts) > 0 && sum.IsInt()
}
