package test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// pagesInOrder lists the README and then all pages in the order in which the index links them; then those that it does
// not link.
func pagesInOrder(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	add := func(page string) {
		if !slices.Contains(pages, page) {
			pages = append(pages, page)
		}
	}
	for _, match := range regexp.MustCompile(`\]\(([^)#:]+\.md)`).FindAllStringSubmatch(readPage(t, "docs/README.md"), -1) {
		add(filepath.ToSlash(filepath.Join("docs", match[1])))
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md", "deploy/*.md"} {
		found, err := filepath.Glob("../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			add(strings.TrimPrefix(filepath.ToSlash(page), "../"))
		}
	}
	return pages
}

// block is a code block of a shell, with the line before it.
type block struct{ mark, text string }

// Marks of blocks.
const (
	runs   = "<!-- runs -->"
	notRun = "<!-- not run: " // and the reason
)

// shellBlocks lists the blocks of a page in order.
func shellBlocks(t *testing.T, page string) []block {
	t.Helper()
	var all []block
	for _, match := range regexp.MustCompile("(?m)^(.*)\n *```(?:sh|bash|shell|console)\n((?s:.*?))\n *```$").FindAllStringSubmatch(readPage(t, page), -1) {
		all = append(all, block{match[1], match[2]})
	}
	return all
}

// usesSidecar finds a block that speaks to a sidecar, or calls a verb.
var usesSidecar = regexp.MustCompile(`(?m)(127\.0\.0\.1|localhost):742\d|\$[A-Z]/|^(\$ )?sidebus `)

// runElsewhere are pages whose blocks another test runs, because they need other programs.
var runElsewhere = map[string]string{
	"docs/consumer-python.md": "TestConsumerPagesWorkWhenPasted", "docs/consumer-node.md": "TestConsumerPagesWorkWhenPasted",
	"docs/consumer-java.md": "TestConsumerPagesWorkWhenPasted", "docs/contributing/writing.md": "it shows the mark itself",
}

// TestAllPagesWorkOnOneSidecar takes the way of a reader who pastes everything: the README first, then each page, with
// all that the pages before have left. Verbs that are shown with what they print must be known to the binary. A block
// that no test runs says why not.
func TestAllPagesWorkOnOneSidecar(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	for _, page := range pagesInOrder(t) {
		if runElsewhere[page] != "" {
			continue
		}
		for _, b := range shellBlocks(t, page) {
			switch {
			case b.mark == runs:
				if printed := shell(t, s, b.text); strings.Contains(printed, "LOCK_LOST") && page != "docs/api/settle.md" {
					t.Errorf("%s: a settlement failed:\n%s\n%s", page, b.text, printed)
				}
			case strings.HasPrefix(b.mark, notRun) || !usesSidecar.MatchString(b.text):
			case isVerbs(b.text):
				knowVerbs(t, s, page, b.text)
			default:
				t.Errorf("%s: no test runs this block; mark it with %s, or with %sREASON -->\n%s", page, runs, notRun, b.text)
			}
		}
	}
}

// verb finds a call of the binary, as it is pasted or shown in a session, with the lines that continue it.
var verb = regexp.MustCompile(`(?m)^(?:\$ )?(sidebus (?:.*\\\n)*.*)$`)

// isVerbs reports whether a block calls the binary and nothing else; a session has what it prints between the calls.
func isVerbs(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(first, "$ sidebus ") || strings.HasPrefix(first, "sidebus ")
}

// knowVerbs fails if a call is not a command line of the binary. It does not check its effect, which depends on
// messages that the page only shows.
func knowVerbs(t *testing.T, s *sidecartest.Sidecar, page, text string) {
	t.Helper()
	isSession := strings.HasPrefix(text, "$ ")
	for _, match := range verb.FindAllStringSubmatch(text, -1) {
		call := match[1]
		if isSession && !strings.HasPrefix(match[0], "$ ") { // a line that the call before has printed
			continue
		}
		if strings.HasPrefix(call, "sidebus serve ") {
			call += " --help"
		}
		ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Patience)
		command := exec.CommandContext(ctx, "bash", "-c", call)
		command.Dir = t.TempDir()
		command.Env = append(sidecartest.Environment(), "PATH="+filepath.Dir(sidecartest.Binary(t))+string(os.PathListSeparator)+os.Getenv("PATH"),
			"SIDEBUS_HTTP_ADDR="+s.HTTP, "SIDEBUS_GRPC_ADDR="+s.GRPC, "SIDEBUS_ADMIN_ADDR="+s.Admin)
		out, err := command.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if strings.Contains(string(out), "pass --yes") { // it asks, which it cannot here
			continue
		}
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 2 || exit.ExitCode() == 127) {
			t.Errorf("%s: %v\n%s\n%s", page, err, call, out)
		}
	}
}

// A failed curl shows why: with -f alone it hides the body, which says what to do.
func TestCurlShowsErrorBodies(t *testing.T) {
	t.Parallel()
	hides := regexp.MustCompile(`curl +(-[a-zA-Z]*f[a-zA-Z]*|--fail)( |$)`)
	for _, page := range pagesInOrder(t) {
		for line := range strings.Lines(readPage(t, page)) {
			if hides.MatchString(line) {
				t.Errorf("%s: use --fail-with-body: %s", page, line)
			}
		}
	}
	scripts, err := filepath.Glob("../examples/*/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if found := hides.FindString(string(text)); found != "" {
			t.Errorf("%s: use --fail-with-body: %s", script, found)
		}
	}
}
