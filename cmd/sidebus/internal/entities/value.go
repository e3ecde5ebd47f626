package entities

import (
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wirejson"
)

// message reads a part of a rule: fields that are texts, messages, or values by name.
func (r *reader) message(n yamlfile.Node, m protoreflect.Message) error {
	known := m.Descriptor().Fields()
	fields, err := r.mapping(n, strings.ToLower(string(m.Descriptor().Name())), func(key string) (bool, string) {
		return known.ByJSONName(key) != nil, "; keys are " + strings.Join(inputs(known), ", ")
	})
	if err != nil {
		return err
	}
	for _, field := range fields {
		of := known.ByJSONName(field.Key)
		if field.IsNull() || !isInput(of) {
			continue
		}
		if one := of.ContainingOneof(); one != nil && !one.IsSynthetic() && m.WhichOneof(one) != nil {
			return field.Errorf("cannot be set together with %s", m.WhichOneof(one).JSONName())
		}
		if err := r.part(field, m, of); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) part(field yamlfile.Node, m protoreflect.Message, of protoreflect.FieldDescriptor) error {
	switch {
	case of.IsMap():
		values, err := r.values(field)
		for name, value := range values {
			m.Mutable(of).
				Map().
				Set(protoreflect.ValueOfString(name).MapKey(), protoreflect.ValueOfMessage(value.ProtoReflect()))
		}
		return err
	case of.Message() != nil:
		return r.message(field, m.Mutable(of).Message())
	default:
		text, err := field.Plain()
		m.Set(of, protoreflect.ValueOfString(text))
		return err
	}
}

// isInput reports whether a field is read; fields that only the sidecar sets are ignored.
func isInput(field protoreflect.FieldDescriptor) bool {
	return !field.IsList() && !slices.Contains(times, field.JSONName())
}

func inputs(of protoreflect.FieldDescriptors) []string {
	var names []string
	for i := range of.Len() {
		if isInput(of.Get(i)) {
			names = append(names, of.Get(i).JSONName())
		}
	}
	return names
}

// values reads properties by name.
func (r *reader) values(n yamlfile.Node) (map[string]*sidebusv1.Value, error) {
	fields, err := r.mapping(n, "values by name", func(string) (bool, string) { return true, "" })
	if err != nil {
		return nil, err
	}
	all := make(map[string]*sidebusv1.Value, len(fields))
	for _, field := range fields {
		if all[field.Key], err = r.value(field); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// value reads the value of a property as the API does: a text, number, bool or null, or a type and a value.
func (r *reader) value(n yamlfile.Node) (*sidebusv1.Value, error) {
	text, err := r.valueJSON(n)
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(map[string]map[string]json.RawMessage{"properties": {"p": text}})
	if err != nil {
		return nil, n.Errorf("is not a value")
	}
	var m sidebusv1.Message
	if err := wirejson.Decode(document, &m); err != nil {
		_, reason, _ := strings.Cut(err.Error(), "properties[p] ")
		return nil, n.Errorf("%s", reason)
	}
	return m.GetProperties()["p"], nil
}

func (r *reader) valueJSON(n yamlfile.Node) (json.RawMessage, error) {
	if !n.IsMapping() {
		return n.JSON()
	}
	fields, err := r.mapping(n, "type and value", yamlfile.OneOf("type", "value"))
	if err != nil {
		return nil, err
	}
	typed := map[string]json.RawMessage{}
	for _, field := range fields {
		if typed[field.Key], err = field.JSON(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(typed)
}
