package filter

import "reflect"

// ParseLong is Parse for a text of any length, because canonical text may be longer than what was parsed.
var ParseLong = parse

// SameTree reports whether two filters have the same structure.
func SameTree(a, b *Filter) bool { return reflect.DeepEqual(a.root, b.root) }
