// Command rules makes docs/rules.md: which rule of docs/spec is proved by which tests, and on what. It reads the output
// of "go test -json" from standard input. With -check it writes nothing and fails when the page is out of date. It
// always fails when a test is named after a rule that does not exist, and when a rule has no passing test and does not
// say why. With -show it shows the run as "go test" would, and keeps its lines for later in a file.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	page := flag.String("page", "docs/rules.md", "the page to write or check")
	check := flag.Bool("check", false, "compare the page with the tests and write nothing")
	spec := flag.String("spec", "docs/spec", "the folder of the specification")
	keep := flag.String("show", "", "show the run of the tests, and keep it in this file")
	flag.Parse()
	var err error
	if *keep != "" {
		err = showAndKeep(os.Stdin, *keep)
	} else {
		err = run(os.Stdin, *spec, *page, *check)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func showAndKeep(results io.Reader, path string) error {
	kept, err := os.Create(path) //nolint:gosec // the file that was named
	if err != nil {
		return err
	}
	return errors.Join(show(results, os.Stdout, kept), kept.Close())
}

func run(results io.Reader, spec, page string, check bool) error {
	l, err := readLaw(spec)
	if err != nil {
		return err
	}
	rules, err := read(results)
	if err != nil {
		return err
	}
	for id := range rules {
		if l.pages[id] == "" {
			return fmt.Errorf("tests are named after %s, which is not in %s", id, spec)
		}
	}
	if ids := l.unproved(rules); len(ids) > 0 {
		return fmt.Errorf("no passing test is named after %s, and the rule does not say why", strings.Join(ids, ", "))
	}
	text := write(l, rules)
	if !check {
		return os.WriteFile(page, []byte(text), 0o644) //nolint:gosec // a page for everybody
	}
	present, err := os.ReadFile(page) //nolint:gosec // the page that was named
	if err != nil {
		return err
	}
	if string(present) != text {
		return fmt.Errorf("the page is out of date; run make rules\n%s", difference(string(present), text))
	}
	return nil
}

// event is a line of "go test -json".
type event struct{ Action, Package, Test, Output string }

// rule is one rule of the specification with the tests that prove it.
type rule struct {
	area   string
	number int
	suffix string
	tests  map[string]map[string]bool // name -> what it ran on
}

func (r *rule) id() string { return fmt.Sprintf("%s-%d%s", r.area, r.number, r.suffix) }

// maxLine is the longest line of a run that is read.
const maxLine = 16 << 20

// eachLine calls do for each line of a run with its event. A line that is not an event, as the tools print some, has an
// event without an action.
func eachLine(results io.Reader, do func(line []byte, e event) error) error {
	lines := bufio.NewScanner(results)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			e = event{}
		}
		if err := do(lines.Bytes(), e); err != nil {
			return err
		}
	}
	return lines.Err()
}

// tailLines is how much of a failed package's output is shown: enough for the report of a panic.
const tailLines = 400

var ruleName = regexp.MustCompile(`(?:^Test|/)([A-Z]+)_(\d+)([a-z]?)_(\w+)`)

// read collects the tests that are named after a rule. A test or a package that failed ends it, with the end of what
// the package printed: one that hangs or panics fails as a whole.
func read(results io.Reader) (map[string]*rule, error) {
	rules := map[string]*rule{}
	printed := map[string][]string{} // package -> its lines
	err := eachLine(results, func(_ []byte, e event) error {
		if e.Action == "output" {
			printed[e.Package] = append(printed[e.Package], e.Output)
		}
		if e.Action == "fail" {
			tail := printed[e.Package]
			tail = tail[max(0, len(tail)-tailLines):]
			return fmt.Errorf("%s %s failed:\n%s", e.Package, e.Test, strings.Join(tail, ""))
		}
		if m := ruleName.FindStringSubmatch(e.Test); m != nil && e.Action == "pass" {
			add(rules, e.Package, m)
		}
		return nil
	})
	if len(rules) == 0 && err == nil {
		return nil, errors.New("no test of a rule passed; pipe the output of go test -json into this program")
	}
	return rules, err
}

func add(rules map[string]*rule, pkg string, m []string) {
	number, _ := strconv.Atoi(m[2]) // digits, by the expression
	r := &rule{area: m[1], number: number, suffix: m[3], tests: map[string]map[string]bool{}}
	if known := rules[r.id()]; known != nil {
		r = known
	}
	rules[r.id()] = r
	if r.tests[m[4]] == nil {
		r.tests[m[4]] = map[string]bool{}
	}
	r.tests[m[4]][where(pkg)] = true
}

// where returns what the tests of a package run on.
func where(pkg string) string {
	_, path, _ := strings.Cut(pkg, "/sidebus/sidebus/")
	switch {
	case strings.HasPrefix(path, "redisstore"):
		return "Redis"
	case strings.HasPrefix(path, "semantics/memstore"):
		return "memory"
	case strings.HasPrefix(path, "proxy"):
		return "wire"
	case strings.HasPrefix(path, "cmd"), strings.HasPrefix(path, "test"):
		return "process"
	default:
		return "unit"
	}
}

// areaOf returns the area of an id.
func areaOf(id string) string {
	area, _, _ := strings.Cut(id, "-")
	return area
}

func write(l law, rules map[string]*rule) string {
	var out strings.Builder
	out.WriteString("# Rules and their tests\n\n" +
		"Made by `make rules` from a run of all tests; do not edit. These are the rules of [the specification](spec/semantics.md), in its order, with the\n" +
		"passing tests that are named after them.\n\n" +
		"*Redis* and *memory* are the two stores, which run the same tests; *wire* is through gRPC and HTTP; *process* is the built\n" +
		"binary; *unit* is a part alone. A rule without a test of its own says why.\n")
	ids := slices.Clone(l.ids)
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		if l.pages[id] != "semantics.md" {
			ids = append(ids, id)
		}
	}
	area := ""
	for _, id := range ids {
		if areaOf(id) != area {
			area = areaOf(id)
			fmt.Fprintf(&out, "\n## %s\n\n| Rule | Proved on | Tests |\n|---|---|---|\n", area)
		}
		r := rules[id]
		if r == nil {
			why := l.why[id]
			fmt.Fprintf(&out, "| %s | | *%s* |\n", l.link(id), strings.ToLower(why[:1])+why[1:])
			continue
		}
		on := map[string]bool{}
		for _, places := range r.tests {
			maps.Copy(on, places)
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", l.link(id), strings.Join(slices.Sorted(maps.Keys(on)), ", "),
			strings.Join(slices.Sorted(maps.Keys(r.tests)), ", "))
	}
	return out.String()
}

// difference lists the lines of only one of two texts, in their order.
func difference(present, wanted string) string {
	var out strings.Builder
	only := func(sign, text, other string) {
		others := strings.Split(other, "\n")
		for line := range strings.SplitSeq(text, "\n") {
			if !slices.Contains(others, line) {
				fmt.Fprintln(&out, sign, line)
			}
		}
	}
	only("-", present, wanted)
	only("+", wanted, present)
	return out.String()
}
