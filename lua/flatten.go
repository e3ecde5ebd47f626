package lua

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

const includeMark = "--@include "

// flatten puts the included functions before the script's own text, each once and after those it needs. Nothing is
// left out: an include line stays where it was, as the comment it is.
func flatten(from fs.FS, source string) (string, error) {
	var out strings.Builder
	if err := include(from, source, map[string]bool{}, nil, &out); err != nil {
		return "", err
	}
	out.WriteString(source)
	return out.String(), nil
}

func include(from fs.FS, source string, done map[string]bool, path []string, out *strings.Builder) error {
	for _, name := range includesOf(source) {
		if slices.Contains(path, name) {
			return fmt.Errorf("circular include %s", strings.Join(append(path, name), " -> "))
		}
		if done[name] {
			continue
		}
		text, err := fs.ReadFile(from, "lib/"+name+".lua")
		if err != nil {
			return fmt.Errorf("unknown include %q: %w", name, err)
		}
		if !strings.Contains(string(text), "\nlocal function "+name+"(") {
			return fmt.Errorf("lib/%s.lua must define local function %s", name, name)
		}
		if err := include(from, string(text), done, append(path, name), out); err != nil {
			return err
		}
		done[name] = true
		out.Write(text)
	}
	return nil
}

func includesOf(source string) []string {
	var names []string
	for line := range strings.Lines(source) {
		if name, ok := strings.CutPrefix(line, includeMark); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
