package filter

import (
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// statements reads a whole action (ACT-1).
func (p *parser) statements() ([]statement, error) {
	var all []statement
	for {
		at := p.token.column
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		if len(all) == semantics.MaxActionExpressions {
			return nil, semantics.AsError(p.errorAt(at, "the action has more than %d statements",
				semantics.MaxActionExpressions)).
				With(semantics.DetailLimit, strconv.Itoa(semantics.MaxActionExpressions))
		}
		all = append(all, s)
		divided := p.divider()
		switch {
		case p.token.kind == tokenEnd:
			return all, nil
		case !divided:
			return nil, p.expected("a semicolon or the end")
		}
	}
}

// divider passes what may stand between statements and after the last.
func (p *parser) divider() bool {
	divided := p.token.is(";") || p.token.is(",")
	if divided {
		p.advance()
	}
	return divided
}

// statement reads one statement. SET and REMOVE are words of the grammar only here, so they may name properties.
func (p *parser) statement() (statement, error) {
	start := p.token
	verb := ""
	if start.kind == tokenWord {
		verb = fold(start.text)
	}
	if verb != "set" && verb != "remove" {
		return nil, p.expected("SET or REMOVE")
	}
	p.advance()
	bare := p.token.kind == tokenName || p.token.word == "" // written without a scope
	target, err := p.target()
	if err != nil {
		return nil, err
	}
	if verb == "remove" {
		s := &remove{target}
		p.warnTarget(start.column, s, bare)
		return s, nil
	}
	if !p.token.is("=") {
		return nil, p.expected("=")
	}
	p.advance()
	s := &set{target: target}
	if s.expression, err = p.value(); err != nil {
		return nil, err
	}
	p.warnTarget(start.column, s, bare)
	p.warnSet(start.column, s)
	return s, nil
}

// target reads the property that a statement changes (ACT-3).
func (p *parser) target() (*property, error) {
	at := p.token
	target, err := p.property()
	switch {
	case err != nil:
		return nil, err
	case target == nil:
		return nil, p.expected("the name of a property")
	case target.system == 0 && utf16Length(target.name) > semantics.MaxPropertyNameLength:
		return nil, p.errorAt(
			at.column, "the name of a property has at most %d characters", semantics.MaxPropertyNameLength,
		)
	case target.system == 0 || target.system == ScheduledEnqueueTimeUTC || settable(target.system):
		return target, nil
	default:
		return nil, p.errorAt(at.column, "sys.%s is assigned by the broker and cannot be changed", target.system)
	}
}
