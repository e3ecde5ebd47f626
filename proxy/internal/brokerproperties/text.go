package brokerproperties

import (
	"maps"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Plain returns an application property as text that need not be parsed again: JSON strings without their quotes.
func Plain(v semantics.Value) string {
	switch v.Type() {
	case semantics.TypeNull:
		return ""
	case semantics.TypeChar:
		return string(rune(v.Int())) //nolint:gosec // a code point
	case semantics.TypeString,
		semantics.TypeURI,
		semantics.TypeUUID,
		semantics.TypeDateTime,
		semantics.TypeDateTimeOffset,
		semantics.TypeDecimal:
		return v.Text()
	default:
		return strings.Trim(string(appendValue(nil, v)), `"`)
	}
}

// WriteProperties returns application properties as one JSON object in ASCII, the value of PropertiesHeader.
func WriteProperties(properties map[string]semantics.Value) string {
	var o object
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		o.key(name)
		o.text = appendValue(o.text, properties[name])
	}
	return string(o.end())
}
