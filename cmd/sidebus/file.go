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

// loadFile reads settings from YAML: one mapping whose keys are among the known ones and whose values are plain.
// Anything else is an error that names the place. The YAML library is the one the YAML organisation keeps; its node
// tree carries the line numbers that make such errors useful, and it brings no dependencies.
func loadFile(path string, known map[string]bool) (map[string]entry, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from

	decoder := yaml.NewDecoder(file)
	var document, second yaml.Node
	err = decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil // an empty file sets nothing
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if decoder.Decode(&second) == nil {
		return nil, fmt.Errorf("%s:%d: only one YAML document is allowed", path, second.Line)
	}
	return readMapping(path, document.Content[0], known)
}

func readMapping(path string, mapping *yaml.Node, known map[string]bool) (map[string]entry, error) {
	if mapping.Kind != yaml.MappingNode {
		if mapping.Tag == "!!null" {
			return nil, nil
		}
		return nil, fmt.Errorf("%s:%d: must be a mapping of settings, like \"store: embedded\"", path, mapping.Line)
	}
	entries := map[string]entry{}
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		place := fmt.Sprintf("%s:%d", path, key.Line)
		if !known[key.Value] {
			return nil, fmt.Errorf("%s: unknown key %q%s", place, key.Value, meant(key.Value, known))
		}
		if before, twice := entries[key.Value]; twice {
			return nil, fmt.Errorf("%s: key %q stands already at %s", place, key.Value, before.place)
		}
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("%s: %s must have one plain value", place, key.Value)
		}
		entries[key.Value] = entry{value: value.Value, place: place}
	}
	return entries, nil
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
