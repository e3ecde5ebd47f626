package lua

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write lib/README.md (make lua-index)")

// folders are the nouns that lib is divided by. Each function lies under the noun that it is about.
var folders = []struct{ name, about string }{
	{"base", "What the language lacks: the clock, numbers as text, long lists, the check of key types."},
	{"entity", "A queue, subscription or topic: opening, closing, use, status."},
	{"intake", "What an entity takes in: whether it does, and how a message is stored."},
	{"log", "Messages in a log: reading, finding, changing, removing."},
	{"available", "Messages that can be handed out: positions above the cursor, gaps, those that came back."},
	{"lock", "Locks of messages: taking, settling, what happens at their end."},
	{"session", "Sessions: their locks, their messages, their state."},
	{"answer", "The size of an answer (decision 0012)."},
	{"dead_letter", "The dead-letter queue."},
	{"expiry", "Messages whose time to live has ended."},
	{"schedule", "Messages that are enqueued later."},
	{"duplicate", "Duplicate detection."},
	{"request", "Sends with a request id."},
	{"topic", "Rules, and the copies that a topic makes."},
	{"transaction", "Operations that take effect together."},
	{"transfer", "Forwarding to another entity, and the transfer dead-letter queue."},
	{"due", "What time brings: `alarm_ms`, and the bounded slice of work that is due."},
	{"wake", "Waking sidecars that wait."},
}

var signature = regexp.MustCompile(`(?m)^local function (\w+\([^)]*\))`)

// firstSentence returns what the header comment of a function says first, without the function's name.
func firstSentence(name, source string) string {
	var words []string
	for line := range strings.Lines(source) {
		text, ok := strings.CutPrefix(line, "-- ")
		if !ok {
			break
		}
		words = append(words, strings.Fields(text)...)
	}
	if len(words) < 2 || words[0] != name {
		return ""
	}
	for i, word := range words {
		if strings.HasSuffix(word, ".") && (i+1 == len(words) || strings.ToUpper(words[i+1][:1]) == words[i+1][:1]) {
			return strings.Join(words[1:i+1], " ")
		}
	}
	return ""
}

// wrap breaks a list item into lines of at most 120 columns.
func wrap(item string) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(item) {
		switch {
		case i == 0:
		case column+1+len(word) > 120:
			out.WriteString("\n ")
			column = 1
			fallthrough
		default:
			out.WriteString(" ")
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}

// index lists every function of lib by folder.
func index(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("# Functions that the scripts share\n\n" +
		"One function a file; a script takes one in with `--@include folder/name`. `make lua-index` writes this page.\n")
	for _, folder := range folders {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n", folder.name, folder.about)
		files, err := fs.Glob(files, "lib/"+folder.name+"/*.lua")
		if err != nil || len(files) == 0 {
			t.Errorf("lib/%s has no functions: %v", folder.name, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(path.Base(file), ".lua")
			source := sources(t)[strings.TrimSuffix(file, ".lua")]
			says := firstSentence(name, source)
			if says == "" {
				t.Errorf("%s must begin with a comment of the form: -- %s does something.", file, name)
			}
			call := name
			for _, m := range signature.FindAllStringSubmatch(source, -1) {
				if strings.HasPrefix(m[1], name+"(") {
					call = m[1]
				}
			}
			out.WriteString(wrap(fmt.Sprintf("- [`%s`](%s/%s.lua) %s", call, folder.name, name, says)) + "\n")
		}
	}
	return out.String()
}

func TestIndexIsCurrent(t *testing.T) {
	t.Parallel()
	want := index(t)
	if *update {
		if err := os.WriteFile("lib/README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("lib/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("lib/README.md does not list the functions as they are: make lua-index")
	}
}

func TestEveryFolderIsInTheIndex(t *testing.T) {
	t.Parallel()
	for name := range sources(t) {
		folder, ok := strings.CutPrefix(path.Dir(name), "lib/")
		if ok && !slices.ContainsFunc(folders, func(f struct{ name, about string }) bool { return f.name == folder }) {
			t.Errorf("say in this test what lib/%s is about", folder)
		}
	}
}
