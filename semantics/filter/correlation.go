package filter

import (
	"maps"
	"math"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// Correlation is a compiled correlation filter: a message is selected if all its fields are equal (CORR-2). It is
// immutable and safe for concurrent use; make one with CompileCorrelation.
type Correlation struct {
	fields     []fieldEqual
	properties []propertyEqual
	warnings   []string
}

// fieldEqual asks for a system property that is a text.
type fieldEqual struct {
	system SystemProperty
	want   string
}

// propertyEqual asks for an application property.
type propertyEqual struct {
	property *property
	want     operand
	given    semantics.Value
}

// CompileCorrelation takes a correlation filter with at least one field (CORR-1). The fields together are bounded as
// the headers of a message are (MSG-2, MSG-14, MSG-15), for what is beyond is in no message. An error is FILTER_INVALID
// with details.field "filter".
func CompileCorrelation(f semantics.CorrelationFilter) (*Correlation, error) {
	c := &Correlation{}
	as := semantics.Message{Properties: f.Properties} // the message that the filter selects
	for _, given := range []struct {
		system SystemProperty
		text   *string
	}{
		{ContentType, f.ContentType},
		{CorrelationID, f.CorrelationID},
		{MessageID, f.MessageID},
		{ReplyTo, f.ReplyTo},
		{ReplyToSessionID, f.ReplyToSessionID},
		{SessionID, f.SessionID},
		{Subject, f.Subject},
		{To, f.To},
	} {
		if given.text != nil {
			c.fields = append(c.fields, fieldEqual{given.system, *given.text})
			*textField(&as, given.system) = *given.text
		}
	}
	if err := as.Validate(); err != nil {
		return nil, correlationInvalid(semantics.AsError(err))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		equal := propertyEqual{userProperty(name), operandOf(f.Properties[name]), f.Properties[name]}
		if equal.want.kind == kindOpaque {
			return nil, filterInvalid(
				"the correlation filter's properties[%s] is %s, which equals nothing", semantics.Shorten(name),
				nounOf(equal.given),
			)
		}
		c.properties = append(c.properties, equal)
	}
	if len(c.fields)+len(c.properties) == 0 {
		return nil, filterInvalid("the correlation filter is empty; specify at least one field or property, or use all")
	}
	c.warn()
	return c, nil
}

// correlationInvalid says of the filter what was said of the message.
func correlationInvalid(e *semantics.Error) error {
	invalid := filterInvalid("the correlation filter's %s", e.Message)
	for _, key := range []string{semantics.DetailLimit, semantics.DetailActual} {
		if value, ok := e.Details[key]; ok {
			invalid = invalid.With(key, value)
		}
	}
	return invalid
}

// warn finds what can match no message.
func (c *Correlation) warn() {
	for _, f := range c.fields {
		if f.want == "" {
			c.warnings = append(
				c.warnings, "sys."+f.system.String()+" = '' matches no message, because an empty one is not set",
			)
		}
	}
	for _, p := range c.properties {
		if p.want.kind == kindDouble && math.IsNaN(p.want.float()) {
			c.warnings = append(c.warnings, textOf(p.property)+" = NaN matches no message, because NaN equals nothing")
		}
	}
}

// Warnings returns, one sentence each, which fields no message can match.
func (c *Correlation) Warnings() []string { return slices.Clone(c.warnings) }

// Matches reports whether the filter selects the message, which must have passed Validate. It does not allocate.
func (c *Correlation) Matches(m *semantics.Message) bool {
	for i := range c.fields {
		if !c.fields[i].holds(m) {
			return false
		}
	}
	for i := range c.properties {
		if !c.properties[i].holds(m) {
			return false
		}
	}
	return true
}

func (c *Correlation) matches(m *semantics.Message, _ *semantics.Budget) (bool, error) {
	return c.Matches(m), nil
}

// holds is false for a field that is not set in the message (CORR-2).
func (f *fieldEqual) holds(m *semantics.Message) bool {
	return f.want != "" && *textField(m, f.system) == f.want
}

func (e *propertyEqual) holds(m *semantics.Message) bool {
	have, ok := m.Properties[e.property.name]
	if !ok {
		if _, have, ok = lookUp(m.Properties, e.property.lower); !ok {
			return false
		}
	}
	return identical(operandOf(have), e.want)
}

// identical reports whether two values are of one kind and equal: numbers by value, null with null only (CORR-3 to
// CORR-5). Unlike =, it does not take a text for a uuid or a datetime.
func identical(a, b operand) bool {
	switch {
	case a.isNumber() && b.isNumber():
		order, ordered := compareNumbers(a, b)
		return ordered && order == 0
	case a.kind != b.kind: // neither is opaque, since no filter holds such a value
		return false
	default:
		return a == b
	}
}
