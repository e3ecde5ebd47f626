package atom

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/wirejson"
	"github.com/sidebus/sidebus/semantics"
)

func contains(names []string, name string) bool { return slices.Contains(names, name) }

func escapeQuery(text string) string { return url.QueryEscape(text) }

func formatInteger(n int64) string { return strconv.FormatInt(n, 10) }

func formatBool(is bool) string { return strconv.FormatBool(is) }

// never is the longest timespan of .NET, which Service Bus has for "never".
const never = "P10675199DT2H48M5.4775807S"

// formatDuration writes a duration as XML has it.
func formatDuration(d time.Duration) string {
	if d == semantics.Never {
		return never
	}
	return formatTicks(d.Nanoseconds() / 100)
}

// formatTicks writes a timespan of ticks of 100 ns as XML has it.
func formatTicks(ticks int64) string {
	const perSecond, perMinute, perHour = 1e7, 60 * 1e7, 3600 * 1e7
	const perDay = 24 * perHour
	var b strings.Builder
	left := uint64(ticks) //nolint:gosec // the sign follows
	if ticks < 0 {
		b.WriteByte('-')
		left = -left
	}
	b.WriteByte('P')
	if days := left / perDay; days > 0 {
		b.WriteString(strconv.FormatUint(days, 10) + "D")
	}
	left %= perDay
	if left == 0 && b.Len() > 2 {
		return b.String()
	}
	b.WriteByte('T')
	for _, unit := range []struct {
		ticks  uint64
		letter string
	}{{perHour, "H"}, {perMinute, "M"}} {
		if n := left / unit.ticks; n > 0 {
			b.WriteString(strconv.FormatUint(n, 10) + unit.letter)
		}
		left %= unit.ticks
	}
	if text := b.String(); left > 0 || strings.HasSuffix(text, "T") {
		seconds := strconv.FormatUint(left/perSecond, 10)
		if part := left % perSecond; part > 0 {
			seconds += "." + strings.TrimRight(strconv.FormatUint(perSecond+part, 10)[1:], "0")
		}
		b.WriteString(seconds + "S")
	}
	return b.String()
}

// parseDuration reads a duration. One that is longer than Sidebus can count is never.
func parseDuration(name, text string) (time.Duration, error) {
	parsed, ok := wirejson.ParseDuration(text)
	if !ok || !strings.Contains(text, "P") {
		return 0, semantics.InvalidField(name, "is %q, must be a duration such as PT1M", semantics.Shorten(text))
	}
	if seconds := parsed.GetSeconds(); seconds >= int64(semantics.Never/time.Second) {
		return semantics.Never, nil
	}
	return parsed.AsDuration(), nil
}

func parseInteger(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, semantics.InvalidField(name, "is %q, must be a whole number", semantics.Shorten(text))
	}
	return n, nil
}

func parseBool(name, text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, semantics.InvalidField(name, "is %q, must be true or false", semantics.Shorten(text))
	}
}

// formatWord returns a word of the API, SEND_DISABLED, as Service Bus writes it, SendDisabled.
func formatWord(word string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(word, "_") {
		b.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return b.String()
}

// parseWord returns the number of a word.
func parseWord(name, text string, words []string) (uint8, error) {
	at := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(formatWord(word), text) })
	if at < 0 {
		all := make([]string, len(words))
		for i, word := range words {
			all[i] = formatWord(word)
		}
		return 0, semantics.InvalidField(
			name, "is %q, must be one of %s", semantics.Shorten(text), strings.Join(all, ", "),
		)
	}
	return uint8(at), nil //nolint:gosec // there are few words
}

// pathOf returns the path of the entity in an address. Clients send either.
func pathOf(address string) string {
	if _, rest, isURL := strings.Cut(address, "://"); isURL {
		_, address, _ = strings.Cut(rest, "/")
	}
	return strings.Trim(address, "/")
}
