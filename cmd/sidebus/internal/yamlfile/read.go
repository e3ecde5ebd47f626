package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxSize is the most bytes of a file.
const MaxSize = 16 << 20

// Read reads a file with one YAML document, which may be empty. flag is what named the file.
func Read(flag, path string) (Node, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return Node{}, fmt.Errorf("%s: %w", flag, err)
	}
	defer file.Close() //nolint:errcheck // only read from
	return Load(path, file)
}

// Load is Read of what is open already. name is what errors call it.
func Load(name string, from io.Reader) (Node, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxSize+1))
	if err != nil {
		return Node{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > MaxSize {
		return Node{}, fmt.Errorf("%s: is larger than %d MiB, the most that is read", name, MaxSize>>20)
	}
	return Parse(name, text)
}

// Parse reads one document of YAML, or of JSON with comments. The YAML library is the one the YAML organisation keeps;
// its node tree carries the line numbers that make errors useful, and it brings no dependencies. It does not know all
// of JSON's escapes, so that JSON is read apart.
func Parse(name string, text []byte) (Node, error) {
	isJSON := looksLikeJSON(text)
	if isJSON {
		if top, err := parseJSON(text); err == nil {
			return topNode(name, top), nil
		}
	}
	top, err := parseYAML(name, text)
	if err != nil && isJSON {
		_, err = parseJSON(text)
		return Node{}, fmt.Errorf("%s:%w", name, err)
	}
	if err != nil {
		return Node{}, err
	}
	return topNode(name, top), nil
}

func topNode(name string, top *yaml.Node) Node {
	n := Node{file: name, yaml: resolved(top)}
	n.Place = n.placeOf(top)
	return n
}

func parseYAML(name string, text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag, Line: 1, Column: 1}, nil
	}
	if err == nil {
		switch err = decoder.Decode(&second); {
		case err == nil:
			return nil, fmt.Errorf("%s:%d: only one YAML document is allowed", name, second.Line)
		case errors.Is(err, io.EOF):
			return document.Content[0], nil
		}
	}
	return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
}
