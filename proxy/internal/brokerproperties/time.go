package brokerproperties

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// ticksPerSecond is the resolution of a TimeSpan: 100 ns.
const ticksPerSecond = int64(time.Second / 100)

// neverSeconds is how Service Bus writes a lifetime that never ends: the largest number of ticks, in seconds.
const neverSeconds = "922337203685.47754"

// formatInstant formats an instant as RFC 1123 (REST-4), truncated to whole seconds.
func formatInstant(at time.Time) string { return at.UTC().Format(http.TimeFormat) }

// instantLayouts are the accepted layouts of an instant: RFC 1123, and ISO 8601, which is UTC if it has no offset.
var instantLayouts = []string{
	http.TimeFormat,
	time.RFC1123,
	time.RFC1123Z,
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
}

// ParseInstant parses an instant in RFC 1123 or ISO 8601 (REST-2). The first instant of year 1, which .NET writes for
// "none", is the zero time.
func ParseInstant(text string) (time.Time, error) {
	for _, layout := range instantLayouts {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if at = at.UTC(); at.Year() < 1 || at.Year() > 9999 {
			break
		}
		return at, nil
	}
	return time.Time{}, errors.New(
		`must be an instant as RFC 1123 or ISO 8601 has it, like "Sat, 02 Jan 2027 15:04:05 GMT" or "2027-01-02T15:04:05Z"`,
	)
}

// parseSeconds parses a lifetime in seconds, with an optional fraction (REST-2). A lifetime beyond time.Duration never
// ends.
func parseSeconds(raw []byte) (time.Duration, error) {
	text := string(raw)
	if !isNumber(text) {
		return 0, errors.New("must be a number of seconds")
	}
	seconds, _ := strconv.ParseFloat(text, 64) // a number beyond all floats is infinite
	if seconds >= semantics.Never.Seconds() {
		return semantics.Never, nil
	}
	// Every value below zero is rejected.
	return time.Duration(math.Round(math.Max(seconds, -1) * float64(time.Second))), nil
}

// formatSeconds is the opposite of parseSeconds.
func formatSeconds(d *time.Duration) string {
	if d == nil || *d == semantics.Never {
		return neverSeconds
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

var timeSpan = regexp.MustCompile(`^(-?)(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?$`)

// parseTimeSpan reads a lifetime as .NET writes a TimeSpan: [d.]hh:mm[:ss[.fffffff]].
func parseTimeSpan(text string) (time.Duration, error) {
	bad := errors.New(`must be a time span like "0.00:00:40" or "1.12:30:00.5"`)
	part := timeSpan.FindStringSubmatch(text)
	if part == nil {
		return 0, bad
	}
	number := func(i int) time.Duration {
		n, _ := strconv.ParseInt(part[i], 10, 64) // digits only, few; none is 0
		return time.Duration(n)
	}
	days, hours, minutes, seconds := number(2), number(3), number(4), number(5)
	if hours > 23 || minutes > 59 || seconds > 59 {
		return 0, bad
	}
	fraction, _ := strconv.ParseInt((part[6] + "0000000")[:7], 10, 64)
	d := hours*time.Hour + minutes*time.Minute + seconds*time.Second + time.Duration(fraction)*100
	switch {
	case part[1] == "-":
		return -1, nil // every value below zero is rejected
	case days > (semantics.Never-d)/(24*time.Hour):
		return semantics.Never, nil
	default:
		return days*24*time.Hour + d, nil
	}
}

// formatTicks formats a time span of ticks as .NET does.
func formatTicks(ticks int64) string {
	sign, rest := "", uint64(ticks) //nolint:gosec // two's complement: the most negative number has no opposite
	if ticks < 0 {
		sign, rest = "-", -rest
	}
	fraction, seconds := rest%uint64(ticksPerSecond), rest/uint64(ticksPerSecond)
	var text strings.Builder
	text.WriteString(sign)
	if days := seconds / 86400; days > 0 {
		fmt.Fprintf(&text, "%d.", days)
	}
	fmt.Fprintf(&text, "%02d:%02d:%02d", seconds/3600%24, seconds/60%60, seconds%60)
	if fraction > 0 {
		fmt.Fprintf(&text, ".%07d", fraction)
	}
	return text.String()
}
