package filter

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// fold brings a name to the form in which names are compared. It is the one semantics.Message.Validate uses, so a name
// finds at most one property.
func fold(name string) string { return strings.ToLower(name) }

// foldNames returns the properties by folded name; the same map if all names are folded already.
func foldNames(properties map[string]semantics.Value) map[string]semantics.Value {
	folded := true
	for name := range properties {
		if fold(name) != name { // does not allocate when they are the same
			folded = false
			break
		}
	}
	if folded {
		return properties
	}
	user := make(map[string]semantics.Value, len(properties))
	for name, value := range properties {
		user[fold(name)] = value
	}
	return user
}

// lookUp finds a property by its folded name, and returns the name it has in the map. It does not allocate.
func lookUp(properties map[string]semantics.Value, lower string) (name string, value semantics.Value, ok bool) {
	if value, ok = properties[lower]; ok {
		return lower, value, true
	}
	for name, value := range properties {
		if foldsTo(name, lower) {
			return name, value, true
		}
	}
	return "", semantics.Value{}, false
}

// foldsTo reports whether fold(name) is lower, without making a text.
func foldsTo(name, lower string) bool {
	for _, r := range name {
		want, size := utf8.DecodeRuneInString(lower)
		if size == 0 || unicode.ToLower(r) != want {
			return false
		}
		lower = lower[size:]
	}
	return lower == ""
}

// utf16Length is the length by which ids and names are bounded (MSG-2, MSG-14). The text must be valid UTF-8.
func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
