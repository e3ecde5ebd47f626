package filter

import "fmt"

// warnComparison warns of a comparison with NULL, and of two constants whose types do not go together.
func (p *parser) warnComparison(column int, n *compared) {
	a, aKnown := constantOf(n.left)
	b, bKnown := constantOf(n.right)
	switch {
	case aKnown && a.kind == kindNull || bKnown && b.kind == kindNull:
		p.warn(column, n, "always unknown, because nothing compares with NULL; write IS NULL")
	case aKnown && bKnown && compare(n.op, a, b) == Unknown:
		p.warn(column, n, "always unknown, because %s and %s do not compare with %s", a.kind, b.kind, n.op)
	}
}

// warnArithmetic warns of two constants that cannot be calculated with.
func (p *parser) warnArithmetic(column int, n *arithmetic) {
	a, aKnown := constantOf(n.left)
	b, bKnown := constantOf(n.right)
	if !aKnown || !bKnown {
		return
	}
	result, problem := calculate(n.op, a, b)
	switch {
	case problem != "":
		p.warn(column, n, "always a failure: %s", problem)
	case result.kind == kindMissing:
		p.warn(column, n, "always unknown, because %s and %s do not go together with %s", a.kind, b.kind, n.op)
	}
}

func (p *parser) warnLike(column int, n *like) {
	for _, v := range []value{n.left, n.pattern} {
		if o, ok := constantOf(v); ok && o.kind != kindText {
			p.warn(column, n, "always unknown, because LIKE takes strings, not %s", o.kind)
			return
		}
	}
}

func (p *parser) warn(column int, n node, format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf("column %d: %s is ", column, textOf(n))+fmt.Sprintf(format, args...))
}

var kindNames = [...]string{
	kindMissing: "no value", kindNull: "NULL", kindBool: "a bool", kindInteger: "a number", kindUnsigned: "a number",
	kindDouble: "a number", kindDecimal: "a number", kindText: "a string", kindUUID: "a uuid", kindInstant: "a datetime",
	kindSpan: "a timespan", kindOpaque: "bytes",
}

// String names the kind for people.
func (k kind) String() string { return kindNames[k] }
