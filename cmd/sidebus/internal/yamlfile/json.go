package yamlfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// looksLikeJSON reports whether a text begins as an object of JSON does, maybe after a comment.
func looksLikeJSON(text []byte) bool {
	const spaces = " \t\r\n"
	inside, isObject := bytes.CutPrefix(bytes.TrimLeft(withoutComments(text), spaces), []byte("{"))
	inside = bytes.TrimLeft(inside, spaces)
	return isObject && (bytes.HasPrefix(inside, []byte(`"`)) || bytes.HasPrefix(inside, []byte("}")))
}

// parseJSON reads JSON that may have comments and commas too many. Its error is "line:column: text".
func parseJSON(text []byte) (*yaml.Node, error) {
	text = withoutComments(text)
	r := &jsonReader{text: text, decoder: json.NewDecoder(bytes.NewReader(text)), line: 1, column: 1}
	r.decoder.UseNumber()
	top, err := r.value(0)
	if err == nil {
		if _, end := r.decoder.Token(); end == nil || !errors.Is(end, io.EOF) {
			err = errors.New("there is more after the end of the document")
		}
	}
	if err != nil {
		line, column := r.position(r.next())
		return nil, fmt.Errorf("%d:%d: %w", line, column, err)
	}
	return top, nil
}

// withoutComments puts spaces in the place of comments, of commas after which nothing comes, and of a byte order mark,
// so that everything else keeps its position.
func withoutComments(text []byte) []byte {
	text = bytes.Clone(text)
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		blank(text[:len("\ufeff")])
	}
	comma := -1 // of the last one, if only spaces came since
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*'):
			end := i + commentLength(text[i:])
			blank(text[i:end])
			i = end - 1
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			text[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return text
}

func commentLength(text []byte) int {
	end := []byte("\n")
	if text[1] == '*' {
		end = []byte("*/")
	}
	if at := bytes.Index(text[2:], end); at >= 0 {
		return 2 + at + len(end)
	}
	return len(text)
}

func blank(text []byte) {
	for i, c := range text {
		if c != '\n' {
			text[i] = ' '
		}
	}
}

// maxDepth is how deep a document of JSON may be nested.
const maxDepth = 64

// jsonReader makes nodes of JSON.
type jsonReader struct {
	text    []byte
	decoder *json.Decoder

	line, column, looked int // how far lines and columns were counted
}

// value reads the next value.
func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	at := r.next()
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	n.Line, n.Column = r.position(at)
	switch token := token.(type) {
	case json.Delim:
		if depth >= maxDepth {
			return nil, fmt.Errorf("more than %d values stand in one another", maxDepth)
		}
		return n, r.fill(n, token, depth)
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", token.String()
		if bytes.ContainsAny([]byte(n.Value), ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(token)
	default:
		n.Tag, n.Value = nullTag, "null"
	}
	return n, nil
}

// fill reads the rest of an object or a list.
func (r *jsonReader) fill(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.MappingNode, "!!map"
	if open == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for r.decoder.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, item)
	}
	_, err := r.decoder.Token()
	if err == nil && open == '{' && len(n.Content)%2 != 0 {
		err = errors.New("an object ends after a key") // the decoder has refused it already
	}
	return err
}

// next is where the next value begins, or what stands in its place.
func (r *jsonReader) next() int {
	at := int(r.decoder.InputOffset())
	for at < len(r.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[at]) >= 0 {
		at++
	}
	return at
}

// position returns line and column of an offset that does not lie before those asked for earlier.
func (r *jsonReader) position(at int) (line, column int) {
	for ; r.looked < at && r.looked < len(r.text); r.looked++ {
		switch c := r.text[r.looked]; {
		case c == '\n':
			r.line, r.column = r.line+1, 1
		case utf8.RuneStart(c):
			r.column++
		}
	}
	return r.line, r.column
}
