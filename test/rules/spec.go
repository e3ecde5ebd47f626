package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// law is the specification: its rules in their order, and why some of them have no tests of their own.
type law struct {
	ids   []string
	pages map[string]string // id -> the page in the folder that has it
	why   map[string]string // id -> "Not built yet", "Background" or "Proved by LOCK-6, RECV-10"
}

const provedBy = "Proved by "

var (
	anchor = regexp.MustCompile(`(?m)^[-|] <a id="([A-Z]+-\d+[a-z]?)"></a>(.*)$`)
	reason = regexp.MustCompile(`^\*\*\S+\*\* \*(Not built yet|Background|` + provedBy + `[A-Z0-9a-z, -]+)\.\*`)
)

// readLaw reads the rules of the pages in a folder.
func readLaw(folder string) (law, error) {
	l := law{pages: map[string]string{}, why: map[string]string{}}
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
			if why := reason.FindStringSubmatch(m[2]); why != nil {
				l.why[m[1]] = why[1]
			}
		}
	}
	return l, nil
}

// unproved lists the rules without a test that do not say why. Those that prove another rule need tests.
func (l law) unproved(rules map[string]*rule) (ids []string) {
	for _, id := range l.ids {
		if rules[id] != nil {
			continue
		}
		others, isProved := strings.CutPrefix(l.why[id], provedBy)
		for other := range strings.SplitSeq(others, ", ") {
			if l.why[id] == "" || isProved && rules[other] == nil {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// link is the id as a link to its text.
func (l law) link(id string) string {
	if page := l.pages[id]; page != "" {
		return "[" + id + "](spec/" + page + "#" + id + ")"
	}
	return id
}
