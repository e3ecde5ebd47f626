package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReliabilityNamesTests checks that every command on the page of reliability runs tests that exist, where it says:
// a command without tests would pass.
func TestReliabilityNamesTests(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile("`go test ((?:\\./\\S+ )+)-run '?([^'`]+?)'?`").FindAllStringSubmatch(readPage(t, "docs/reliability.md"), -1)
	if len(commands) == 0 {
		t.Fatal("the page has no commands")
	}
	for _, command := range commands {
		packages := strings.Fields(command[1])
		for _, pattern := range strings.Split(strings.ReplaceAll(command[2], `\|`, "|"), "|") {
			first, rest, _ := strings.Cut(pattern, "/")
			if !hasTest(t, packages, "func Test", strings.TrimPrefix(first, "Test")) {
				t.Errorf("no test of %v matches %q", packages, first)
			}
			if rest != "" && !hasTest(t, []string{"./semantics/storetest"}, "func test", rest) {
				t.Errorf("no test of the conformance suite matches %q", rest)
			}
		}
	}
}

// hasTest reports whether a file of one of the packages defines a test whose name matches a pattern as go test's -run does.
func hasTest(t *testing.T, packages []string, prefix, pattern string) bool {
	t.Helper()
	name := regexp.MustCompile("(?m)^" + prefix + "(?:" + pattern + `|\w*` + pattern + `)\w*\(`)
	found := false
	for _, dir := range packages {
		all := strings.HasSuffix(dir, "/...")
		root := filepath.Join("..", strings.TrimSuffix(dir, "/..."))
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				if err == nil && path != root && !all {
					return filepath.SkipDir
				}
				return err
			}
			if strings.HasSuffix(path, ".go") {
				source, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				found = found || name.Match(source)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
