package filter

import (
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// open passes an opening parenthesis.
func (p *parser) open() error {
	if !p.token.is("(") {
		return p.expected("(")
	}
	if p.depth++; p.depth > MaxDepth {
		return p.errorAt(p.token.column, "more than %d parentheses are open", MaxDepth)
	}
	p.advance()
	return nil
}

func (p *parser) close() error {
	if !p.token.is(")") {
		return p.expected(")")
	}
	p.depth--
	p.advance()
	return nil
}

func (p *parser) advance() {
	if p.token.kind != tokenBad {
		p.token = p.lexer.next()
	}
}

// asValue takes a node that must be a value, read from start on.
func (p *parser) asValue(start token, n node) (value, error) {
	v, ok := n.(value)
	if !ok {
		return nil, p.errorAt(start.column, "expected a value, found a condition")
	}
	return v, nil
}

// expected says what should be in place of the next token.
func (p *parser) expected(what string) error {
	if p.token.kind == tokenBad {
		return p.errorAt(p.token.column, "%s", p.token.text)
	}
	what, advice, advised := strings.Cut(what, "; ")
	if advised {
		advice = "; " + advice
	}
	return p.errorAt(p.token.column, "expected %s, found %s%s", what, p.token, advice)
}

func (p *parser) errorAt(column int, format string, args ...any) error {
	return p.errorf("column %d: "+format, append([]any{column}, args...)...)
}

func (p *parser) errorf(format string, args ...any) error {
	return semantics.Errorf(p.code, format, args...).With(semantics.DetailField, p.field)
}
