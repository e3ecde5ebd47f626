package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
)

// entry is one setting from a file and where it stands there, as "file:line".
type entry struct {
	value, place string
}

// section reads a part of the file that is more than one plain value.
type section func(n yamlfile.Node) error

// loadFile reads settings from YAML: one mapping whose keys are among the known ones, with plain values, or those of
// sections. Anything else is an error that names the place.
func loadFile(path string, known map[string]bool, sections map[string]section) (map[string]entry, error) {
	top, err := yamlfile.Read("--config", path)
	if err != nil || top.IsNull() {
		return nil, err
	}
	fields, err := top.Mapping("settings, like \"store: embedded\"", func(key string) (bool, string) {
		_, isSection := sections[key]
		return known[key] || isSection, meant(key, known)
	})
	if err != nil {
		return nil, err
	}
	entries := map[string]entry{}
	for _, field := range fields {
		if read, isSection := sections[field.Key]; isSection {
			if err := read(field); err != nil {
				return nil, err
			}
			continue
		}
		text, err := field.Plain()
		if err != nil {
			return nil, err
		}
		entries[field.Key] = entry{value: text, place: field.Place}
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
