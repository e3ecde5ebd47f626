package yamlfile

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// indent is how far what belongs to a key is moved in.
const indent = 2

// FromJSON returns the nodes of a document of JSON.
func FromJSON(document []byte) (*yaml.Node, error) { return parseJSON(document) }

// Write writes nodes as YAML that people like to read.
func Write(to io.Writer, top *yaml.Node) error {
	style(top)
	encoder := yaml.NewEncoder(to)
	encoder.SetIndent(indent)
	if err := encoder.Encode(top); err != nil {
		return err
	}
	return encoder.Close()
}

// style lets the library choose how to write a text, unless it has many lines, which it does not always read again as
// it writes them.
func style(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = 0
		if strings.ContainsFunc(n.Value, unicode.IsControl) && !isBlock(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, child := range n.Content {
		style(child)
	}
}

// isBlock reports whether a text of many lines may be written line by line.
func isBlock(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' || strings.HasSuffix(line, " ") ||
			strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || r > unicode.MaxLatin1 }) {
			return false
		}
	}
	return true
}

// WriteJSON writes a document of JSON with a line for each value.
func WriteJSON(to io.Writer, document []byte) error {
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", strings.Repeat(" ", indent)); err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err := to.Write(text.Bytes())
	return err
}
