package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Code, pages and tests cite rules by their ids. Each id of an area of the specification must be a rule that stands
// there.
func TestCitedRulesExist(t *testing.T) {
	t.Parallel()
	rules, areas := map[string]bool{}, map[string]bool{}
	for _, page := range []string{"semantics.md", "background.md"} {
		for _, m := range regexp.MustCompile(`<a id="(([A-Z]+)-\d+[a-z]?)"></a>`).FindAllStringSubmatch(readPage(t, "docs/spec/"+page), -1) {
			if rules[m[1]] {
				t.Errorf("docs/spec/%s has %s twice", page, m[1])
			}
			rules[m[1]], areas[m[2]] = true, true
		}
	}
	if len(rules) < 400 {
		t.Fatalf("docs/spec has %d rules", len(rules))
	}
	listed, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	cited := regexp.MustCompile(`\b([A-Z]{2,})[-_](\d+[a-z]?)(?:\b|_)`)
	var unknown []string
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if path == "test/rules/main_test.go" { // has made-up ones
			continue
		}
		if !slices.Contains([]string{".go", ".lua", ".md", ".proto", ".py", ".sh", ".yaml", ".json"}, filepath.Ext(path)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", path)) //nolint:gosec // a file of the project
		if err != nil {
			continue // removed, and not committed yet
		}
		for _, m := range cited.FindAllStringSubmatch(string(text), -1) {
			if id := m[1] + "-" + m[2]; areas[m[1]] && !rules[id] {
				unknown = append(unknown, path+": "+id)
			}
		}
	}
	slices.Sort(unknown)
	for _, what := range slices.Compact(unknown) {
		t.Error(what + " is not in docs/spec")
	}
}
