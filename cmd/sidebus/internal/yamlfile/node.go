package yamlfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const nullTag = "!!null"

// Node is a value in a file.
type Node struct {
	Place string // where it stands, "file:line"
	Name  string // such as "handlers[0].url"; the top has none
	Key   string // its own in the mapping it stands in

	file       string
	hasColumns bool
	yaml       *yaml.Node
}

// WithColumns is the node, but places in what is below it, and that of the top, also have a column: "file:line:column".
func (n Node) WithColumns() Node {
	if n.hasColumns = true; n.Name == "" {
		n.Place = n.placeOf(n.yaml)
	}
	return n
}

func (n Node) placeOf(y *yaml.Node) string {
	if n.hasColumns {
		return fmt.Sprintf("%s:%d:%d", n.file, y.Line, y.Column)
	}
	return fmt.Sprintf("%s:%d", n.file, y.Line)
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// IsNull reports whether there is no value.
func (n Node) IsNull() bool { return n.yaml.Kind == yaml.ScalarNode && n.yaml.Tag == nullTag }

// IsMapping reports whether the value is a mapping.
func (n Node) IsMapping() bool { return n.yaml.Kind == yaml.MappingNode }

// Errorf makes an error that names the place and, if it has one, the name of the value.
func (n Node) Errorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if n.Name != "" {
		text = n.Name + " " + text
	}
	return fmt.Errorf("%s: %s", n.Place, text)
}

// Plain returns the text of a plain value.
func (n Node) Plain() (string, error) {
	if n.yaml.Kind != yaml.ScalarNode || n.IsNull() {
		return "", n.Errorf("must have one plain value")
	}
	return n.yaml.Value, nil
}

// Mapping returns the values of a mapping in their order. isKnown reports whether a key is permitted, and suggests what
// the user may have meant. what says what the mapping is of.
func (n Node) Mapping(what string, isKnown func(key string) (ok bool, hint string)) ([]Node, error) {
	if n.yaml.Kind != yaml.MappingNode {
		return nil, n.Errorf("must be a mapping of %s", what)
	}
	fields, places := make([]Node, 0, len(n.yaml.Content)/2), map[string]string{}
	for i := 0; i < len(n.yaml.Content); i += 2 {
		key, value := n.yaml.Content[i], n.yaml.Content[i+1]
		field := n
		field.Place, field.Name, field.Key, field.yaml = n.placeOf(key), key.Value, key.Value, resolved(value)
		if n.Name != "" {
			field.Name = n.Name + "." + key.Value
		}
		if ok, hint := isKnown(key.Value); !ok {
			return nil, fmt.Errorf("%s: unknown key %q%s", field.Place, field.Name, hint)
		}
		if place, twice := places[key.Value]; twice {
			return nil, fmt.Errorf("%s: key %q stands already at %s", field.Place, field.Name, place)
		}
		places[key.Value] = field.Place
		fields = append(fields, field)
	}
	return fields, nil
}

// List returns the values of a list.
func (n Node) List(what string) ([]Node, error) {
	if n.yaml.Kind != yaml.SequenceNode {
		return nil, n.Errorf("must be a list of %s", what)
	}
	items := make([]Node, len(n.yaml.Content))
	for i, item := range n.yaml.Content {
		items[i] = n
		items[i].Place, items[i].Name, items[i].Key = n.placeOf(item), fmt.Sprintf("%s[%d]", n.Name, i), ""
		items[i].yaml = resolved(item)
	}
	return items, nil
}

// OneOf is for Mapping: the keys there may be.
func OneOf(keys ...string) func(string) (bool, string) {
	return func(key string) (bool, string) {
		return slices.Contains(keys, key), "; keys are " + strings.Join(keys, ", ")
	}
}

// JSON returns a plain value as JSON: a bool, a number with its fraction mark, null, or else a text. YAML's own ways to
// write numbers, such as 0x1F, are translated.
func (n Node) JSON() ([]byte, error) {
	if n.yaml.Kind != yaml.ScalarNode {
		return nil, n.Errorf("must have one plain value")
	}
	text := []byte(n.yaml.Value)
	var value any
	switch n.yaml.ShortTag() {
	case nullTag:
		return []byte("null"), nil
	case "!!bool", "!!int", "!!float":
		if json.Valid(text) {
			return text, nil
		}
		if err := n.yaml.Decode(&value); err != nil {
			return nil, n.Errorf("is %q, which cannot be read", n.yaml.Value)
		}
	default:
		value = n.yaml.Value
	}
	if f, ok := value.(float64); ok {
		return n.floatJSON(f)
	}
	return marshal(value)
}

// marshal is json.Marshal, but <, > and & stay as they are.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

func (n Node) floatJSON(f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, n.Errorf(
			`is %q, which JSON does not know; write {type: double, value: Infinity}, -Infinity or NaN`, n.yaml.Value,
		)
	}
	text := strconv.AppendFloat(nil, f, 'g', -1, 64)
	if !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return text, nil
}

// Document returns the JSON of a node with all below it.
func (n Node) Document() ([]byte, error) {
	isKnown := func(string) (bool, string) { return true, "" }
	switch n.yaml.Kind {
	case yaml.MappingNode:
		fields, err := n.Mapping("values by name", isKnown)
		return n.join('{', fields, '}', err)
	case yaml.SequenceNode:
		items, err := n.List("values")
		return n.join('[', items, ']', err)
	default:
		return n.JSON()
	}
}

func (n Node) join(open byte, parts []Node, end byte, err error) ([]byte, error) {
	text := []byte{open}
	for i, part := range parts {
		if i > 0 {
			text = append(text, ',')
		}
		if open == '{' {
			name, err := marshal(part.Key)
			if err != nil {
				return nil, err
			}
			text = append(append(text, name...), ':')
		}
		value, err := part.Document()
		if err != nil {
			return nil, err
		}
		text = append(text, value...)
	}
	return append(text, end), err
}
