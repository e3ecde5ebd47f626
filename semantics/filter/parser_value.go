package filter

import (
	"math"
	"strconv"
)

// value reads an expression that must be a value.
func (p *parser) value() (value, error) {
	start := p.token
	n, err := p.expr()
	if err != nil {
		return nil, err
	}
	return p.asValue(start, n)
}

func (p *parser) expr() (node, error) { return p.chain(p.term, sum) }

func (p *parser) term() (node, error) { return p.chain(p.factor, product) }

var (
	sum     = map[string]operator{"+": plus, "-": minus}
	product = map[string]operator{"*": times, "/": divide, "%": remainder}
)

// chain reads operands with operators of one precedence between them, from left to right (SQL-2).
func (p *parser) chain(next func() (node, error), operators map[string]operator) (node, error) {
	start := p.token
	n, err := next()
	for err == nil {
		op, ok := operators[p.token.text]
		if !ok || p.token.kind != tokenSymbol {
			break
		}
		var left, right value
		if left, err = p.asValue(start, n); err != nil {
			break
		}
		p.advance()
		at := p.token
		if n, err = next(); err != nil {
			break
		}
		if right, err = p.asValue(at, n); err != nil {
			break
		}
		p.reads = true
		step := &arithmetic{op: op, left: left, right: right}
		p.warnArithmetic(start.column, step)
		n = step
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// factor reads one operand, with at most one sign. A sign right before a number is part of it, so that the least int64
// can be written.
func (p *parser) factor() (node, error) {
	if !p.token.is("+") && !p.token.is("-") {
		return p.primary()
	}
	negative := p.token.is("-")
	p.advance()
	if p.token.kind == tokenInteger || p.token.kind == tokenReal {
		return p.number(negative)
	}
	start := p.token
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	v, err := p.asValue(start, n)
	if err != nil {
		return nil, err
	}
	return &signed{negative: negative, of: v}, nil
}

func (p *parser) primary() (node, error) {
	t := p.token
	switch {
	case t.kind == tokenInteger || t.kind == tokenReal:
		return p.number(false)
	case t.kind == tokenString:
		p.advance()
		return &constant{textOperand(t.text)}, nil
	case t.is("true") || t.is("false"):
		p.advance()
		return &constant{boolOperand(t.is("true"))}, nil
	case t.is("null"):
		p.advance()
		return &constant{operand{kind: kindNull}}, nil
	case t.kind == tokenParameter:
		return p.parameter()
	case t.is("newid"):
		return p.newID()
	case t.is("property") || t.is("p"):
		return p.lookup()
	case t.is("("):
		return p.group()
	}
	property, err := p.property()
	if err != nil {
		return nil, err
	}
	if property == nil {
		return nil, p.expected("a value")
	}
	return property, nil
}

func (p *parser) group() (node, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	return n, p.close()
}

// number makes the constant of a number (SQL-5).
func (p *parser) number(negative bool) (node, error) {
	t := p.token
	text := t.text
	if negative {
		text = "-" + text
	}
	p.advance()
	if t.kind == tokenInteger {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, p.errorAt(
				t.column, "integer %s does not fit 64 bits (%d to %d)", text, math.MinInt64, math.MaxInt64,
			)
		}
		return &constant{intOperand(n)}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, p.errorAt(t.column, "number %s does not fit a double", text)
	}
	return &constant{floatOperand(f)}, nil
}

func (p *parser) parameter() (node, error) {
	t := p.token
	v, ok := p.parameters[fold(t.text)]
	if !ok {
		return nil, p.errorAt(t.column, "parameter @%s has no value; pass one with the rule", t.text)
	}
	p.advance()
	return &parameter{name: t.text, value: operandOf(v), given: v}, nil
}

func (p *parser) newID() (node, error) {
	if err := p.call(); err != nil {
		return nil, err
	}
	if !p.token.is(")") {
		return nil, p.expected("); newid takes no argument")
	}
	return newID{}, p.close()
}

// call passes the name of a function and its opening parenthesis.
func (p *parser) call() error {
	name := p.token.text
	p.advance()
	if !p.token.is("(") {
		return p.expected("( after " + name + "; write [" + name + "] for a property of that name")
	}
	return p.open()
}
