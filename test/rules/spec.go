package main

import (
	"os"
	"path/filepath"
	"regexp"
)

// law is the specification: its rules in their order, and which of them are not built yet.
type law struct {
	ids   []string
	pages map[string]string // id -> the page in the folder that has it
	later map[string]bool   // ids of rules that this version does not keep
}

var (
	anchor   = regexp.MustCompile(`(?m)^[-|] <a id="([A-Z]+-\d+[a-z]?)"></a>(.*)$`)
	notBuilt = regexp.MustCompile(`(?i)\*not built yet`)
)

// readLaw reads the rules of the pages in a folder.
func readLaw(folder string) (law, error) {
	l := law{pages: map[string]string{}, later: map[string]bool{}}
	for _, page := range []string{"semantics.md", "background.md"} {
		text, err := os.ReadFile(filepath.Join(folder, page)) //nolint:gosec // the folder that was named
		if err != nil {
			return law{}, err
		}
		for _, m := range anchor.FindAllStringSubmatch(string(text), -1) {
			if page == "semantics.md" {
				l.ids = append(l.ids, m[1])
			}
			l.pages[m[1]] = page
			l.later[m[1]] = notBuilt.MatchString(m[2])
		}
	}
	return l, nil
}

// link is the id as a link to its text.
func (l law) link(id string) string {
	if page := l.pages[id]; page != "" {
		return "[" + id + "](spec/" + page + "#" + id + ")"
	}
	return id
}
