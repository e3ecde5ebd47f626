package filter

import "reflect"

// ParseLong is Parse for a text of any length, because canonical text may be longer than what was parsed.
var ParseLong = parse

// ParseLongAction is ParseAction for a text of any length.
var ParseLongAction = parseAction

// SameStatements reports whether two actions have the same structure.
func SameStatements(a, b *Action) bool { return reflect.DeepEqual(a.statements, b.statements) }

// SameTree reports whether two filters have the same structure.
func SameTree(a, b *Filter) bool { return reflect.DeepEqual(a.root, b.root) }
