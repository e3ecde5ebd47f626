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
// what to write instead. A pattern cannot tell "news" as a name from "news" as a notification.
var unwanted = map[string]*regexp.Regexp{
	"name who it is": regexp.MustCompile(`(?i)\b(whoever|nobody|somebody)\b`),
	"returns, reports whether; distinguishes":    regexp.MustCompile(`(?i)\b(gives|gave|tells|says whether)\b`),
	"again; recreate":                            regexp.MustCompile(`(?i)\b(anew|once more)\b`),
	"except, only":                               regexp.MustCompile(`(?i)\b(but for|nothing but)\b`),
	"automatically; or name what does it":        regexp.MustCompile(`(?i)\bby (itself|themselves)\b`),
	"unsettled, in flight, locked":               regexp.MustCompile(`(?i)\bin hand\b`),
	"expired, skipped":                           regexp.MustCompile(`(?i)\b(time is over|passed over)\b`),
	"runs, processes":                            regexp.MustCompile(`(?i)\b(carries out|carried out|sees to)\b`),
	"creates":                                    regexp.MustCompile(`(?i)\bmakes (an?|the|another|no) (queue|topic|subscription|entit(y|ies)|rule)\b`),
	"is created":                                 regexp.MustCompile(`(?i)\b(queue|topic|subscription|entity|rule) (is|was) made\b`),
	"stops or crashes, becomes idle":             regexp.MustCompile(`(?i)\b(dies|died|comes? to rest|came to rest)\b`),
	"is not a":                                   regexp.MustCompile(`(?i)(^|[^e]|[^r]e) is no [a-km-z]`), // "there is no" may stay
	"slot, batch queue, apply, see the last row": regexp.MustCompile(`(?i)\b(room|seats?|lanes?|doors?|heeds?)\b`),
	"dead-letter":                                regexp.MustCompile(`(?i)\b(bury|buries|buried)\b`),
}

// Comments of Go and Lua, the texts of Go, and the pages keep to the words of docs/contributing/writing.md. Tests are
// exempt, and so are the pages that are not rewritten for style: the rules, the decisions, and that page's own tables.
func TestWordsAreThoseOfTheGuide(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "*.go", "*.lua", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for path := range strings.Lines(string(listed)) {
		path = strings.TrimSpace(path)
		if regexp.MustCompile(`_test\.go$|\.pb\.|^docs/(spec/|decisions/|rules\.md)`).MatchString(path) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", path)) //nolint:gosec // a file of the project
		if err != nil {
			continue // removed, and not committed yet
		}
		checked[filepath.Ext(path)]++
		for _, said := range textsOf(t, path, string(text)) {
			for instead, words := range unwanted {
				if found := words.FindString(said); found != "" {
					t.Errorf("%s: %q in %.80q: %s", path, found, said, instead)
				}
			}
		}
	}
	if checked[".go"] < 300 || checked[".lua"] < 100 || checked[".md"] < 50 {
		t.Errorf("only these were checked: %v", checked)
	}
}

// paragraphsOf returns the paragraphs and rows of a page without its code.
func paragraphsOf(path, page string) []string {
	if path == "docs/contributing/writing.md" {
		page = regexp.MustCompile(`(?m)^\|.*$`).ReplaceAllString(page, "")
	}
	page = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`").ReplaceAllString(page, "CODE")
	page = regexp.MustCompile(`(?m)\n *([-|]|\d+\. )`).ReplaceAllString(page, "\n\n$1")
	paragraphs := strings.Split(page, "\n\n")
	for i, text := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(text), " ")
	}
	return paragraphs
}

// textsOf returns what people read of a file: the text of a page, the comments of a script, the comments of Go, and its
// strings with a blank.
func textsOf(t *testing.T, path, source string) []string {
	t.Helper()
	var texts []string
	switch filepath.Ext(path) {
	case ".md":
		return paragraphsOf(path, source)
	case ".lua":
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
