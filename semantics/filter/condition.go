package filter

import "github.com/sidebus/sidebus/semantics"

// node is a part of a filter: a condition or a value.
type node interface {
	write(w *writer)
}

// condition is a node with a truth. Nodes never change once the parser is done.
type condition interface {
	node
	truth(p Properties) (Truth, error)
}

type (
	or  struct{ terms []condition }
	and struct{ terms []condition }
	not struct{ term condition }

	// holds is a value that stands as a condition; the value should be a bool.
	holds struct{ value value }

	compared struct {
		op          comparison
		left, right value
	}
	isNull struct {
		property *property
		negated  bool
	}
	exists struct{ property *property }
	in     struct {
		left    value
		items   []value
		negated bool
	}
	like struct {
		left, pattern, escape value // escape may be nil
		negated               bool
		compiled              *pattern // nil if the pattern is known only with the message
	}
)

// asCondition takes a node where a condition stands; a value becomes one.
func asCondition(n node) condition {
	if c, ok := n.(condition); ok {
		return c
	}
	return &holds{n.(value)} //nolint:errcheck // a node is one or the other
}

// truth is false at the first false term (SQL-7).
func (n *and) truth(p Properties) (Truth, error) {
	least := True
	for _, term := range n.terms {
		t, err := term.truth(p)
		if err != nil || t == False {
			return False, err
		}
		least = min(least, t)
	}
	return least, nil
}

// truth is true at the first true term (SQL-7).
func (n *or) truth(p Properties) (Truth, error) {
	greatest := False
	for _, term := range n.terms {
		t, err := term.truth(p)
		if err != nil {
			return False, err
		}
		if t == True {
			return True, nil
		}
		greatest = max(greatest, t)
	}
	return greatest, nil
}

func (n *not) truth(p Properties) (Truth, error) {
	t, err := n.term.truth(p)
	if err != nil {
		return False, err
	}
	return t.not(), nil
}

func (n *holds) truth(p Properties) (Truth, error) {
	o, err := n.value.operand(p)
	switch {
	case err != nil:
		return False, err
	case o.kind != kindBool:
		return Unknown, nil
	default:
		return truthOf(o.bits != 0), nil
	}
}

func (n *compared) truth(p Properties) (Truth, error) {
	left, right, err := operands(n.left, n.right, p)
	if err != nil {
		return False, err
	}
	return compare(n.op, left, right), nil
}

// truth is never unknown (SQL-9).
func (n *isNull) truth(p Properties) (Truth, error) {
	return truthOf(n.property.find(p).isVoid()).negatedIf(n.negated), nil
}

// truth is never unknown; a listed system property exists if it is set (SQL-4, SQL-9).
func (n *exists) truth(p Properties) (Truth, error) {
	if n.property.system != 0 {
		return truthOf(p.System(n.property.system).Type() != semantics.TypeNull), nil
	}
	_, ok := p.User(n.property.lower)
	return truthOf(ok), nil
}

// truth is that of left = item1 OR left = item2 ... (SQL-8).
func (n *in) truth(p Properties) (Truth, error) {
	left, err := n.left.operand(p)
	if err != nil {
		return False, err
	}
	greatest := False
	for _, item := range n.items {
		o, err := item.operand(p)
		if err != nil {
			return False, err
		}
		t := compare(equal, left, o)
		if t == True {
			return True.negatedIf(n.negated), nil
		}
		greatest = max(greatest, t)
	}
	return greatest.negatedIf(n.negated), nil
}

func (n *like) truth(p Properties) (Truth, error) {
	left, err := n.left.operand(p)
	if err != nil {
		return False, err
	}
	compiled := n.compiled
	if compiled == nil {
		if compiled, err = n.patternOf(p); err != nil {
			return False, err
		}
	}
	if compiled == nil || left.kind != kindText {
		return Unknown, nil
	}
	matches := compiled.matches(left.text, budgetOf(p))
	if budgetOf(p).Spent() {
		return False, failed(n, budgetSpent)
	}
	return truthOf(matches).negatedIf(n.negated), nil
}

// patternOf compiles the pattern for one message; nil if there is none to be had (SQL-14).
func (n *like) patternOf(p Properties) (*pattern, error) {
	source, err := n.pattern.operand(p)
	if err != nil {
		return nil, err
	}
	escape := noEscape
	if n.escape != nil {
		o, err := n.escape.operand(p)
		if err != nil {
			return nil, err
		}
		var ok bool
		if escape, ok = escapeOf(o); !ok {
			return nil, nil
		}
	}
	if source.kind != kindText {
		return nil, nil
	}
	if !budgetOf(p).Spend(len(source.text)) {
		return nil, failed(n, budgetSpent)
	}
	compiled, _ := compilePattern(source.text, escape)
	return compiled, nil
}

// compile prepares the pattern if it and the escape character are constants, and says what is wrong with it.
func (n *like) compile() (problem string) {
	source, ok := constantOf(n.pattern)
	if !ok || source.kind != kindText {
		return ""
	}
	escape := noEscape
	if n.escape != nil {
		o, ok := constantOf(n.escape)
		if !ok {
			return ""
		}
		escape, _ = escapeOf(o)
	}
	n.compiled, problem = compilePattern(source.text, escape)
	return problem
}

// operands evaluates two values; the first failure counts.
func operands(a, b value, p Properties) (left, right operand, err error) {
	if left, err = a.operand(p); err != nil {
		return left, right, err
	}
	right, err = b.operand(p)
	return left, right, err
}
