package main

import (
	"fmt"
	"regexp"
	"strings"
)

var block = regexp.MustCompile(`(?s)(<!-- figures: (\w+) -->\n).*?(<!-- end -->)`)

// fill replaces the blocks of a page. It fails when the page lacks one, or has one that it does not know.
func fill(page string, texts map[string]string) (string, error) {
	filled, unknown := map[string]bool{}, ""
	page = block.ReplaceAllStringFunc(page, func(old string) string {
		parts := block.FindStringSubmatch(old)
		text, is := texts[parts[2]]
		if !is {
			unknown = parts[2]
		}
		filled[parts[2]] = true
		return parts[1] + "\n" + strings.TrimSpace(text) + "\n\n" + parts[3]
	})
	if unknown != "" {
		return "", fmt.Errorf("the page has figures %q, which no table has", unknown)
	}
	for name := range texts {
		if !filled[name] {
			return "", fmt.Errorf("the page has no place for the figures %q", name)
		}
	}
	return page, nil
}

// table returns a table of Markdown. The first row is its head.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}
