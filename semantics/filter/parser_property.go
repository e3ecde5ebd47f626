package filter

import "strings"

// property reads a property with or without scope; nil if the token cannot start one.
func (p *parser) property() (*property, error) {
	t := p.token
	switch {
	case t.kind == tokenName, t.kind == tokenWord && t.word == "":
		p.advance()
		if p.token.is(".") {
			return nil, p.errorAt(
				t.column, "expected sys or user before a dot, found %s; write [ ] around a name with a dot in it", t,
			)
		}
		return userProperty(t.text), nil
	case t.is("sys"), t.is("user"):
		p.advance()
	case t.word != "":
		return nil, p.expected("a value; write [" + t.text + "] for a property of that name")
	default:
		return nil, nil // the caller knows what was expected
	}
	if !p.token.is(".") {
		return nil, p.expected(". after " + t.text + "; write [" + t.text + "] for a property of that name")
	}
	p.advance()
	name := p.token
	if name.kind != tokenName && (name.kind != tokenWord || name.word != "") {
		return nil, p.expected("a name after " + t.text + ".")
	}
	if t.is("user") {
		p.advance()
		return userProperty(name.text), nil
	}
	system, ok := systemByName[fold(name.text)]
	if !ok {
		return nil, p.errorAt(name.column, "%s is not a system property", name)
	}
	p.advance()
	return &property{system: system}, nil
}

func userProperty(name string) *property { return &property{name: name, lower: fold(name)} }

// propertyByName finds what property(name) means: a scope may stand before the name (SQL-15). It is false for a name
// that is not a system property.
func propertyByName(name string) (*property, bool) {
	scope, rest, scoped := strings.Cut(name, ".")
	switch {
	case scoped && fold(scope) == "sys":
		system, ok := systemByName[fold(rest)]
		return &property{system: system}, ok
	case scoped && fold(scope) == "user":
		return userProperty(rest), true
	default:
		return userProperty(name), true
	}
}

// lookup reads property(name). A constant name is resolved now.
func (p *parser) lookup() (node, error) {
	if err := p.call(); err != nil {
		return nil, err
	}
	at := p.token.column
	if p.token.is(")") {
		return nil, p.expected("the name of a property; property takes one argument")
	}
	name, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.token.is(",") {
		return nil, p.expected("); property takes one argument")
	}
	n := &lookup{name: name}
	if o, ok := constantOf(name); ok {
		if o.kind != kindText || o.text == "" {
			return nil, p.errorAt(at, "expected the name of a property as a string")
		}
		if n.fixed, ok = propertyByName(o.text); !ok {
			return nil, p.errorAt(at, "%s is not a system property", o.text)
		}
	}
	return n, p.close()
}
