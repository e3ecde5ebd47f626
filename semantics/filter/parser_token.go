package filter

import (
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// bind takes the values of the parameters (SQL-16). Since they are kept with the rule they are not without bound: all
// together may be as large as the headers of a message.
func (p *parser) bind(parameters map[string]semantics.Value) error {
	p.parameters = make(map[string]semantics.Value, len(parameters))
	size := 0
	for name, value := range parameters {
		bare := name
		if name != "" && name[0] == '@' {
			bare = name[1:]
		}
		lower := fold(bare)
		if _, taken := p.parameters[lower]; taken {
			return p.errorf("parameter %q appears twice; names are compared without case", bare)
		}
		if !operandOf(value).fitsParameter(value.Type()) {
			return p.errorf(
				"parameter %q must be a string, number, bool, datetime or timespan, got %s", bare, value.Type(),
			)
		}
		p.parameters[lower] = value
		size += len(bare) + value.Size()
	}
	if size > semantics.MaxHeaderSize {
		return p.errorf(
			"the parameters are %d bytes with their names, at most %d are allowed", size, semantics.MaxHeaderSize,
		)
	}
	return nil
}

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
