package filter

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Seen is a property of a message as a rule sees it.
type Seen struct {
	Property string // its name in the rule, in canonical text
	Value    semantics.Value
	Missing  bool // the message has no such application property
}

// String returns the value with its type, because values of unlike types are never equal.
func (s Seen) String() string {
	if s.Missing {
		return "missing"
	}
	return describe(s.Value)
}

func seen(n *property, p Properties) Seen {
	value, ok := n.exact(p)
	return Seen{Property: textOf(n), Value: value, Missing: !ok}
}

// seenBy returns the properties a condition asks for, each once, in the order they are written.
func seenBy(c condition, p Properties) []Seen {
	var all []Seen
	add := func(n *property) {
		s := seen(n, p)
		if !slices.ContainsFunc(all, func(known Seen) bool { return known.Property == s.Property }) {
			all = append(all, s)
		}
	}
	switch c := c.(type) {
	case *isNull:
		add(c.property)
	case *exists:
		add(c.property)
	default:
		for _, v := range valuesOf(c) {
			eachProperty(v, p, add)
		}
	}
	return all
}

// valuesOf returns the values a test is made of.
func valuesOf(c condition) []value {
	switch c := c.(type) {
	case *holds:
		return []value{c.value}
	case *compared:
		return []value{c.left, c.right}
	case *in:
		return append([]value{c.left}, c.items...)
	case *like:
		if c.escape != nil {
			return []value{c.left, c.pattern, c.escape}
		}
		return []value{c.left, c.pattern}
	default:
		return nil
	}
}

// eachProperty passes all properties that a value is made from to add.
func eachProperty(v value, p Properties, add func(*property)) {
	switch v := v.(type) {
	case *property:
		add(v)
	case *signed:
		eachProperty(v.of, p, add)
	case *arithmetic:
		eachProperty(v.left, p, add)
		eachProperty(v.right, p, add)
	case *lookup:
		eachProperty(v.name, p, add)
		if found, err := v.resolve(p); err == nil && found != nil {
			add(found)
		}
	}
}

// describe writes a value with its type for people: 'red' (string), 5 (int32), NULL. A long text is cut.
func describe(v semantics.Value) string {
	const most = 60
	text, _ := plainText(v)
	switch v.Type() {
	case semantics.TypeNull:
		return "NULL"
	case semantics.TypeBytes:
		return "bytes of length " + strconv.Itoa(v.Size())
	case semantics.TypeBool:
		text = strings.ToUpper(text)
	case semantics.TypeString, semantics.TypeURI, semantics.TypeChar, semantics.TypeUUID, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset, semantics.TypeTimeSpan:
		text = "'" + strings.ReplaceAll(semantics.ShortenTo(text, most), "'", "''") + "'"
	default: // a number
	}
	return text + " (" + v.Type().String() + ")"
}

// String returns the field as people read it.
func (f *fieldEqual) String() string {
	return textOf(&property{system: f.system}) + " = " + describe(semantics.String(f.want))
}

// String returns the property as people read it, with the type it must have.
func (e *propertyEqual) String() string { return textOf(e.property) + " = " + describe(e.given) }

// String returns the filter as people read it; unlike that of Filter it cannot be parsed.
func (c *Correlation) String() string {
	var parts []string
	for i := range c.fields {
		parts = append(parts, c.fields[i].String())
	}
	for i := range c.properties {
		parts = append(parts, c.properties[i].String())
	}
	return strings.Join(parts, " AND ")
}
