package filter

import (
	"fmt"

	"github.com/sidebus/sidebus/semantics"
)

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

// warnTarget warns of statements that do nothing, and of names that mean something else without "sys." (ACT-4). bare
// reports that the name has no scope.
func (p *parser) warnTarget(column int, s statement, bare bool) {
	target := s.on()
	named := systemByName[target.lower]
	switch {
	case target.system == ScheduledEnqueueTimeUTC:
		p.warn(column, s, "without effect: an action cannot schedule a message")
	case target.lower == fold(PropertyRuleName):
		p.warn(column, s, "without effect: every copy that an action makes has the name of the rule there")
	case bare && target.system == 0 && named != 0 && settable(named):
		p.warn(column, s, "about an application property; write sys.%s for that of the broker", named)
	}
}

// warnSet warns of a constant that the system property cannot take.
func (p *parser) warnSet(column int, n *set) {
	if _, known := constantOf(n.expression); !known || !settable(n.target.system) {
		return
	}
	v, err := exactOf(n.expression, nil) // a constant asks for no property
	if problem := setSystem(&semantics.Message{}, n.target.system, v); err == nil && problem != "" {
		p.warn(column, n, "always a failure: %s", problem)
	}
}

func (p *parser) warn(column int, n node, format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf("column %d: %s is ", column, textOf(n))+fmt.Sprintf(format, args...))
}

var kindNames = [...]string{
	kindMissing: "no value", kindNull: "NULL", kindBool: "a bool", kindInteger: "a number", kindUnsigned: "a number",
	kindDouble: "a number", kindDecimal: "a number", kindText: "a string", kindUUID: "a uuid",
	kindInstant: "a datetime",
	kindSpan:    "a timespan", kindOpaque: "bytes",
}

// String names the kind for people.
func (k kind) String() string { return kindNames[k] }
