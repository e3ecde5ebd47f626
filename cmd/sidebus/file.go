package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is one setting from a file and where it stands there, as "file:line".
type entry struct {
	value, place string
}

// section reads a part of the file that is more than one plain value.
type section func(n node) error

// loadFile reads settings from YAML: one mapping whose keys are among the known ones, with plain values, or those of sections.
// Anything else is an error that names the place.
func loadFile(path string, known map[string]bool, sections map[string]section) (map[string]entry, error) {
	top, err := readYAML("--config", path)
	if err != nil || top.isNull() {
		return nil, err
	}
	fields, err := top.mapping("settings, like \"store: embedded\"", func(key string) (bool, string) {
		_, isSection := sections[key]
		return known[key] || isSection, meant(key, known)
	})
	if err != nil {
		return nil, err
	}
	entries := map[string]entry{}
	for _, field := range fields {
		if read, isSection := sections[field.key]; isSection {
			if err := read(field); err != nil {
				return nil, err
			}
			continue
		}
		text, err := field.plain()
		if err != nil {
			return nil, err
		}
		entries[field.key] = entry{value: text, place: field.place}
	}
	return entries, nil
}

// readYAML reads a file with one YAML document, which may be empty. The YAML library is the one the YAML organisation keeps; its node
// tree carries the line numbers that make errors useful, and it brings no dependencies. flag is what named the file.
func readYAML(flag, path string) (node, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return node{}, fmt.Errorf("%s: %w", flag, err)
	}
	defer file.Close() //nolint:errcheck // only read from

	decoder := yaml.NewDecoder(file)
	var document, second yaml.Node
	err = decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return node{yaml: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}}, nil
	}
	if err != nil {
		return node{}, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if decoder.Decode(&second) == nil {
		return node{}, fmt.Errorf("%s:%d: only one YAML document is allowed", path, second.Line)
	}
	top := document.Content[0]
	return node{file: path, place: fmt.Sprintf("%s:%d", path, top.Line), yaml: resolved(top)}, nil
}

// node is a value in a file, with its name and where it stands, for errors. key is its own in the mapping it stands in.
type node struct {
	file, place, name, key string
	yaml                   *yaml.Node
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (n node) isNull() bool { return n.yaml.Kind == yaml.ScalarNode && n.yaml.Tag == "!!null" }

// errorf makes an error that names the place and, if it has one, the name of the value.
func (n node) errorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if n.name != "" {
		text = n.name + " " + text
	}
	return fmt.Errorf("%s: %s", n.place, text)
}

// plain gives the text of a plain value.
func (n node) plain() (string, error) {
	if n.yaml.Kind != yaml.ScalarNode || n.isNull() {
		return "", n.errorf("must have one plain value")
	}
	return n.yaml.Value, nil
}

// mapping gives the values of a mapping in their order. isKnown tells which keys there may be, or what the user may have meant. what
// says what the mapping is of.
func (n node) mapping(what string, isKnown func(key string) (ok bool, hint string)) ([]node, error) {
	if n.yaml.Kind != yaml.MappingNode {
		return nil, n.errorf("must be a mapping of %s", what)
	}
	var fields []node
	for i := 0; i < len(n.yaml.Content); i += 2 {
		key, value := n.yaml.Content[i], n.yaml.Content[i+1]
		field := node{file: n.file, place: fmt.Sprintf("%s:%d", n.file, key.Line), name: key.Value, key: key.Value, yaml: resolved(value)}
		if n.name != "" {
			field.name = n.name + "." + key.Value
		}
		if ok, hint := isKnown(key.Value); !ok {
			return nil, fmt.Errorf("%s: unknown key %q%s", field.place, field.name, hint)
		}
		if at := slices.IndexFunc(fields, func(other node) bool { return other.key == key.Value }); at >= 0 {
			return nil, fmt.Errorf("%s: key %q stands already at %s", field.place, field.name, fields[at].place)
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// list gives the values of a list.
func (n node) list(what string) ([]node, error) {
	if n.yaml.Kind != yaml.SequenceNode {
		return nil, n.errorf("must be a list of %s", what)
	}
	items := make([]node, len(n.yaml.Content))
	for i, item := range n.yaml.Content {
		items[i] = node{
			file: n.file, name: fmt.Sprintf("%s[%d]", n.name, i), place: fmt.Sprintf("%s:%d", n.file, item.Line), yaml: resolved(item),
		}
	}
	return items, nil
}

// oneOf is for mapping: the keys there may be.
func oneOf(keys ...string) func(string) (bool, string) {
	return func(key string) (bool, string) {
		return slices.Contains(keys, key), "; keys are " + strings.Join(keys, ", ")
	}
}

// meant guesses a key that was written in another style, such as httpAddr or http_addr.
func meant(key string, known map[string]bool) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
	}
	for _, candidate := range slices.Sorted(maps.Keys(known)) {
		if plain(candidate) == plain(key) {
			return fmt.Sprintf("; did you mean %q?", candidate)
		}
	}
	return "; keys are the names of the flags of serve"
}
