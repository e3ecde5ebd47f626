// Package duration reads and writes durations as people write them.
package duration

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proxy/wirejson"
)

// Day is what "1d" means. A day of a calendar may be longer or shorter.
const Day = 24 * time.Hour

// mostDays bounds a number of days, so that it fits into hours.
const mostDays = 1_000_000

var days = regexp.MustCompile(`[\d.]+d`)

// Wire reads a duration as the API takes it, and also with whole days: "30s", "1d2h30m", "7d", "PT30S".
func Wire(text string) (*durationpb.Duration, error) {
	inHours := days.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.Atoi(part[:len(part)-1])
		if err != nil || n > mostDays {
			return part
		}
		return strconv.Itoa(24*n) + "h"
	})
	d, ok := wirejson.ParseDuration(inHours)
	if !ok {
		return nil, fmt.Errorf("is %q, must be a duration such as 30s, 1d2h30m, 7d or PT30S", text)
	}
	return d, nil
}

// Parse is Wire for durations of at most 292 years.
func Parse(text string) (time.Duration, error) {
	d, err := Wire(text)
	if err != nil {
		return 0, err
	}
	if seconds := d.GetSeconds(); seconds > math.MaxInt64/int64(time.Second) ||
		seconds < math.MinInt64/int64(time.Second) {
		return 0, fmt.Errorf("is %q, must be at most 292 years", text)
	}
	return d.AsDuration(), nil
}

// units are those that Text writes, the longest first.
var units = []struct {
	name string
	size time.Duration
}{{"d", Day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {
	"µs",
	time.Microsecond,
}, {"ns", 1}}

// mostOfOne is the largest number that Text writes of one unit.
const mostOfOne = 999

// Text writes a duration as Parse reads it, in one unit where that is short: "400s", "7d", "1d2h30m".
func Text(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d == math.MinInt64: // has no opposite
		return d.String()
	case d < 0:
		return "-" + Text(-d)
	}
	for _, u := range units {
		if n := d / u.size; d%u.size == 0 && n <= mostOfOne {
			return strconv.FormatInt(int64(n), 10) + u.name
		}
	}
	text := ""
	if n := d / Day; n > 0 {
		text, d = strconv.FormatInt(int64(n), 10)+"d", d%Day
	}
	if n := d / time.Hour; n > 0 {
		text, d = text+strconv.FormatInt(int64(n), 10)+"h", d%time.Hour
	}
	if n := d / time.Minute; n > 0 {
		text, d = text+strconv.FormatInt(int64(n), 10)+"m", d%time.Minute
	}
	if d > 0 {
		text += d.String()
	}
	return text
}
