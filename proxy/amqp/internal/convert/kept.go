package convert

import (
	"maps"
	"reflect"
	"slices"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/semantics"
)

// form is how the body of a message came. It is the first byte of semantics.Message.AMQP, which the sections follow
// that have what no field of Sidebus says; see rest. Stored messages have it, so its values do not change.
type form byte

// The forms.
const (
	asData     form = 0 // one data section, or none: Body is its content
	asSections form = 1 // Body is all sections of the body, encoded
	asValue    form = 2 // an amqp-value of a string or a binary: Body is its content
)

// readBody sets the body of a message. What is only data or only a text is readable for all clients; anything else is
// for clients of AMQP, and others get its encoding.
func (s *Sections) readBody(m *semantics.Message) form {
	switch {
	case len(s.bodies) == 0:
		return asData
	case len(s.bodies) == 1 && len(s.Data) == 1:
		m.Body = s.Data[0]
		return asData
	case len(s.bodies) == 1 && s.HasValue:
		switch v := s.Value.(type) {
		case string:
			m.Body, m.BodyKind = []byte(v), semantics.BodyText
			return asValue
		case []byte:
			m.Body = v
			return asValue
		}
	}
	m.Body = slices.Concat(s.bodies...)
	return asSections
}

// annotated are the annotations that a field of Sidebus has, or that the broker sets (MSG-4).
var annotated = map[string]bool{
	string(lockToken): true, string(sequenceNumber): true, string(enqueuedTime): true, string(lockedUntil): true,
	string(messageState): true, string(enqueueSequence): true, string(scheduledTime): true, string(partitionKey): true,
	string(deadLetterSourceKey): true,
}

// rest returns what of a message no field of Sidebus says, with the form of its body; nil for nothing.
func (s *Sections) rest(m *semantics.Message, form form) []byte {
	header := only(s.Header, durableField, priorityField, acquirerField)
	fields := only(s.Properties, userField, contentEncoding, expiryField, creationField, groupSequence)
	for _, at := range []int{idField, correlation} {
		if id := Field(s.Properties, at); id != nil {
			if _, isText := id.(string); !isText {
				fields = with(fields, at, id)
			}
		}
	}
	var properties codec.Map
	came := byName(s.Application)
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		if !reflect.DeepEqual(FromValue(m.Properties[name]), came[name]) {
			properties = append(properties, codec.Entry(name, came[name]))
		}
	}
	b := []byte{byte(form)}
	b = appendList(b, headerSection, header)
	b = appendMap(b, deliveryAnnotationsSection, unknown(s.DeliveryAnnotations))
	b = appendMap(b, messageAnnotationsSection, unknown(s.Annotations))
	b = appendList(b, propertiesSection, fields)
	b = appendMap(b, applicationSection, properties)
	b = appendMap(b, footerSection, s.Footer)
	if len(b) == 1 && form == asData {
		return nil
	}
	return b
}

// byName returns application properties by their names. Of several with one name the last counts.
func byName(all codec.Map) map[string]any {
	if len(all) == 0 {
		return nil
	}
	values := make(map[string]any, len(all))
	for _, p := range all {
		name, _ := codec.Text(p.Key)
		values[name] = p.Value
	}
	return values
}

// only returns the fields of a list at these places, nil if all of them are null.
func only(list codec.List, places ...int) (some codec.List) {
	for _, at := range places {
		if value := Field(list, at); value != nil {
			some = with(some, at, value)
		}
	}
	return some
}

// with returns a list with a value at a place.
func with(list codec.List, at int, value any) codec.List {
	for len(list) <= at {
		list = append(list, nil)
	}
	list[at] = value
	return list
}

// unknown returns the annotations that Sidebus has no field for, and those that are null, each name once.
func unknown(all codec.Map) (some codec.Map) {
	seen := map[string]bool{}
	for _, p := range all {
		name, isText := codec.Text(p.Key)
		if isText && (annotated[name] && p.Value != nil || seen[name]) {
			continue
		}
		if isText {
			seen[name] = true
		}
		some = append(some, p)
	}
	return some
}

func appendList(b []byte, code uint64, list codec.List) []byte {
	if len(list) == 0 {
		return b
	}
	return appendSection(b, code, list)
}

func appendMap(b []byte, code uint64, all codec.Map) []byte {
	if len(all) == 0 {
		return b
	}
	return appendSection(b, code, all)
}

// kept is what rest has returned for a message.
type kept struct {
	Sections

	form       form
	properties map[string]any
}

// keptOf reads it. What cannot be read, which no version has written, is as if there was nothing.
func keptOf(stored []byte) *kept {
	if len(stored) == 0 {
		return &kept{}
	}
	s, err := Parse(stored[1:])
	if err != nil || stored[0] > byte(asValue) {
		return &kept{}
	}
	return &kept{*s, form(stored[0]), byName(s.Application)}
}

// property returns a property in the type in which it came, unless it was changed since.
func (k *kept) property(name string, value semantics.Value) any {
	if came := k.properties[name]; came != nil {
		if v, err := valueOf(came); err == nil && v == value {
			return came
		}
	}
	return FromValue(value)
}

// appendBody adds the body in the form in which it came.
func (k *kept) appendBody(b []byte, m *semantics.Received) []byte {
	switch {
	case k.form == asSections:
		return append(b, m.Body...)
	case k.form == asValue && m.BodyKind == semantics.BodyText:
		return appendSection(b, valueSection, string(m.Body))
	case k.form == asValue:
		return appendSection(b, valueSection, m.Body)
	default:
		return appendSection(b, dataSection, m.Body)
	}
}

// joined returns annotations, of which there are few, with those of more whose names they do not have.
func joined(all, more codec.Map) codec.Map {
	for _, p := range more {
		if name, isText := codec.Text(p.Key); !isText || !slices.ContainsFunc(all, func(q codec.Pair) bool {
			other, _ := codec.Text(q.Key)
			return other == name
		}) {
			all = append(all, p)
		}
	}
	return all
}
