package filter

import (
	"github.com/sidebus/sidebus/semantics"
)

// parser reads tokens from left to right with one token of look-ahead and never goes back, so its time is linear in the
// text. Parentheses around a condition and around a value look alike until they are closed; so what they hold is parsed
// as a node, and the user of the node asks for the kind it needs.
type parser struct {
	code       semantics.Code // of every error
	field      string         // details.field of every error
	lexer      lexer
	token      token                      // the one to look at
	depth      int                        // parentheses open
	parameters map[string]semantics.Value // by folded name without the @
	warnings   []string
	reads      bool // see Filter
}

func newParser(code semantics.Code, field, text string) *parser {
	p := &parser{code: code, field: field, lexer: lexer{text: text, column: 1}}
	p.advance()
	return p
}

// predicate reads a whole condition.
func (p *parser) predicate() (condition, error) {
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	return asCondition(n), nil
}

func (p *parser) or() (node, error) {
	first, err := p.and()
	if err != nil || !p.token.is("or") {
		return first, err
	}
	terms, err := p.more("or", first, p.and)
	return &or{terms}, err
}

func (p *parser) and() (node, error) {
	first, err := p.not()
	if err != nil || !p.token.is("and") {
		return first, err
	}
	terms, err := p.more("and", first, p.not)
	return &and{terms}, err
}

// more reads the rest of a chain of conditions with a keyword between them.
func (p *parser) more(keyword string, first node, next func() (node, error)) ([]condition, error) {
	terms := []condition{asCondition(first)}
	for p.token.is(keyword) {
		p.advance()
		n, err := next()
		if err != nil {
			return nil, err
		}
		terms = append(terms, asCondition(n))
	}
	return terms, nil
}

func (p *parser) not() (node, error) {
	if !p.token.is("not") {
		return p.test()
	}
	p.advance()
	if p.token.is("not") {
		return nil, p.errorAt(p.token.column, "expected a condition, found NOT; write NOT (NOT ...)")
	}
	n, err := p.test()
	if err != nil {
		return nil, err
	}
	return &not{asCondition(n)}, nil
}

// test reads one test, or a value or parenthesised condition that stands for itself.
func (p *parser) test() (node, error) {
	if p.token.is("exists") {
		return p.exists()
	}
	start := p.token
	n, err := p.expr()
	if err != nil {
		return nil, err
	}
	op, compares := comparisonOf(p.token)
	switch {
	case compares:
		return p.comparison(start, n, op)
	case p.token.is("is"):
		return p.isNull(start, n)
	case p.token.is("in"):
		return p.in(start, n, false)
	case p.token.is("like"):
		return p.like(start, n, false)
	case !p.token.is("not"):
		return n, nil
	}
	p.advance()
	switch {
	case p.token.is("in"):
		return p.in(start, n, true)
	case p.token.is("like"):
		return p.like(start, n, true)
	default:
		return nil, p.expected("IN or LIKE after NOT")
	}
}

func comparisonOf(t token) (comparison, bool) {
	if t.kind != tokenSymbol {
		return 0, false
	}
	switch t.text {
	case "=":
		return equal, true
	case "<>", "!=":
		return notEqual, true
	case ">":
		return greater, true
	case ">=":
		return greaterOrEqual, true
	case "<":
		return less, true
	case "<=":
		return lessOrEqual, true
	default:
		return 0, false
	}
}

func (p *parser) comparison(start token, n node, op comparison) (node, error) {
	left, err := p.asValue(start, n)
	if err != nil {
		return nil, err
	}
	p.advance()
	right, err := p.value()
	if err != nil {
		return nil, err
	}
	test := &compared{op: op, left: left, right: right}
	p.warnComparison(start.column, test)
	return test, nil
}

func (p *parser) isNull(start token, n node) (node, error) {
	property, ok := n.(*property)
	if !ok || start.is("(") {
		return nil, p.errorAt(start.column, "expected the name of a property before IS")
	}
	p.advance()
	negated := p.token.is("not")
	if negated {
		p.advance()
	}
	if !p.token.is("null") {
		return nil, p.expected("NULL")
	}
	p.advance()
	return &isNull{property: property, negated: negated}, nil
}

func (p *parser) exists() (node, error) {
	p.advance()
	if err := p.open(); err != nil {
		return nil, err
	}
	property, err := p.property()
	if err != nil {
		return nil, err
	}
	if property == nil {
		return nil, p.expected("the name of a property")
	}
	return &exists{property}, p.close()
}

func (p *parser) in(start token, n node, negated bool) (node, error) {
	left, err := p.asValue(start, n)
	if err != nil {
		return nil, err
	}
	p.advance()
	if err := p.open(); err != nil {
		return nil, err
	}
	test := &in{left: left, negated: negated}
	for {
		at := p.token
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		test.items = append(test.items, item)
		p.warnComparison(at.column, &compared{op: equal, left: left, right: item})
		if !p.token.is(",") {
			return test, p.close()
		}
		p.advance()
	}
}

// like reads the pattern and the escape character, and compiles the pattern now if both are constants (SQL-14).
func (p *parser) like(start token, n node, negated bool) (node, error) {
	left, err := p.asValue(start, n)
	if err != nil {
		return nil, err
	}
	p.advance()
	patternAt := p.token.column
	p.reads = true
	test := &like{left: left, negated: negated}
	if test.pattern, err = p.value(); err != nil {
		return nil, err
	}
	if p.token.is("escape") {
		p.advance()
		escapeAt := p.token.column
		if test.escape, err = p.value(); err != nil {
			return nil, err
		}
		if escape, ok := constantOf(test.escape); ok {
			if _, ok := escapeOf(escape); !ok {
				return nil, p.errorAt(escapeAt, "expected a string of one character after ESCAPE")
			}
		}
	}
	if problem := test.compile(); problem != "" {
		return nil, p.errorAt(patternAt, "%s", problem)
	}
	p.warnLike(start.column, test)
	return test, nil
}
