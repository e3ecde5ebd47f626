package lua

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const includeMark = "--@include "

// rareMark is a line after which a script has what most of its calls never reach. The functions that only this part
// includes are made there, and not by every call.
const rareMark = "--@rare\n"

// flatten puts the included functions before the part of the script that needs them, each once and after those it
// needs. It keeps every line: an include line stays where it was, as a comment.
func flatten(from fs.FS, source string) (string, error) {
	var out strings.Builder
	done := map[string]bool{}
	for part := range strings.SplitAfterSeq(source, rareMark) {
		if err := include(from, part, done, nil, &out); err != nil {
			return "", err
		}
		out.WriteString(part)
	}
	return out.String(), nil
}

func include(from fs.FS, source string, done map[string]bool, within []string, out *strings.Builder) error {
	for _, name := range includesOf(source) {
		if slices.Contains(within, name) {
			return fmt.Errorf("circular include %s", strings.Join(append(within, name), " -> "))
		}
		if done[name] {
			continue
		}
		text, err := fs.ReadFile(from, "lib/"+name+".lua")
		if err != nil {
			return fmt.Errorf("unknown include %q: %w", name, err)
		}
		if function := path.Base(name); !strings.Contains(string(text), "\nlocal function "+function+"(") {
			return fmt.Errorf("lib/%s.lua must define local function %s", name, function)
		}
		if err := include(from, string(text), done, append(within, name), out); err != nil {
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
