package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unwanted are the words that docs/contributing/writing.md replaces, as far as a pattern can tell their meaning, and
// what to write instead.
var unwanted = map[string]*regexp.Regexp{
	"name who it is": regexp.MustCompile(`(?i)\b(whoever|nobody|somebody)\b`),
	"returns, reports whether; distinguishes":    regexp.MustCompile(`(?i)\b(tells|says whether)\b`),
	"again; recreate":                            regexp.MustCompile(`(?i)\b(anew|once more)\b`),
	"except, only":                               regexp.MustCompile(`(?i)\b(but for|nothing but)\b`),
	"automatically; or name what does it":        regexp.MustCompile(`(?i)\bby (itself|themselves)\b`),
	"unsettled, in flight, locked":               regexp.MustCompile(`(?i)\bin hand\b`),
	"expired, skipped":                           regexp.MustCompile(`(?i)\b(time is over|passed over)\b`),
	"runs, processes":                            regexp.MustCompile(`(?i)\b(carries out|carried out|sees to)\b`),
	"stops or crashes, becomes idle":             regexp.MustCompile(`(?i)\b(dies|comes to rest)\b`),
	"is not a":                                   regexp.MustCompile(`(?i)(^|[^e]|[^r]e) is no [a-km-z]`), // "there is no" may stay
	"slot, batch queue, apply, see the last row": regexp.MustCompile(`(?i)\b(room|seats?|lanes?|heeds?)\b`),
	"dead-letter":                                regexp.MustCompile(`(?i)\b(bury|buries|buried)\b`),
}

// Comments of Go and Lua, and the texts of Go, keep to the words of docs/contributing/writing.md. Tests are exempt.
func TestWordsAreThoseOfTheGuide(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "*.go", "*.lua").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, ".pb.") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", path)) //nolint:gosec // a file of the project
		if err != nil {
			continue // removed, and not committed yet
		}
		checked++
		for _, said := range textsOf(t, path, string(text)) {
			for instead, words := range unwanted {
				if found := words.FindString(said); found != "" {
					t.Errorf("%s: %q in %.80q: %s", path, found, said, instead)
				}
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d files were checked", checked)
	}
}

// textsOf returns the comments of a file, and the texts with a blank of a Go file.
func textsOf(t *testing.T, path, source string) []string {
	t.Helper()
	var texts []string
	if filepath.Ext(path) == ".lua" {
		var comments strings.Builder
		for line := range strings.Lines(source) {
			_, comment, _ := strings.Cut(line, "--")
			comments.WriteString(strings.TrimSpace(comment) + " ")
		}
		return append(texts, comments.String())
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Comments {
		texts = append(texts, strings.Join(strings.Fields(group.Text()), " "))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.Contains(text.Value, " ") {
			texts = append(texts, text.Value)
		}
		return true
	})
	return texts
}
