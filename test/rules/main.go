// Command rules makes docs/rules.md: which rule of the specification is proved by which tests, and on what. It reads the
// output of "go test -json" from standard input. With -check it writes nothing and fails when a rule of the page has no
// passing test any more, or when the page is otherwise out of date. With -show it shows the run as "go test" would, and keeps its
// lines for later in a file.
package main

import (
	"bufio"
	"cmp"
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
	keep := flag.String("show", "", "show the run of the tests, and keep it in this file")
	flag.Parse()
	var err error
	if *keep != "" {
		err = showAndKeep(os.Stdin, *keep)
	} else {
		err = run(os.Stdin, *page, *check)
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

func run(results io.Reader, page string, check bool) error {
	rules, err := read(results)
	if err != nil {
		return err
	}
	text := write(rules)
	if !check {
		return os.WriteFile(page, []byte(text), 0o644) //nolint:gosec // a page for everybody
	}
	present, err := os.ReadFile(page) //nolint:gosec // the page that was named
	if err != nil {
		return err
	}
	return compare(string(present), text, rules)
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

// tailLines is how much of a failed package's output is shown: enough for the report of a panic.
const tailLines = 400

var ruleName = regexp.MustCompile(`(?:^Test|/)([A-Z]+)_(\d+)([a-z]?)_(\w+)`)

// read collects the tests that are named after a rule. A test or a package that failed ends it, with the end of what the
// package printed: one that hangs or panics fails as a whole.
func read(results io.Reader) (map[string]*rule, error) {
	rules := map[string]*rule{}
	printed := map[string][]string{} // package -> its lines
	lines := bufio.NewScanner(results)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // what the tools print besides
		}
		if e.Action == "output" {
			printed[e.Package] = append(printed[e.Package], e.Output)
		}
		if e.Action == "fail" {
			tail := printed[e.Package]
			tail = tail[max(0, len(tail)-tailLines):]
			return nil, fmt.Errorf("%s %s failed:\n%s", e.Package, e.Test, strings.Join(tail, ""))
		}
		if m := ruleName.FindStringSubmatch(e.Test); m != nil && e.Action == "pass" {
			add(rules, e.Package, m)
		}
	}
	if len(rules) == 0 && lines.Err() == nil {
		return nil, errors.New("no test of a rule passed; pipe the output of go test -json into this program")
	}
	return rules, lines.Err()
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

// where tells what the tests of a package run on.
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

// areas are the areas of the specification in its order; others follow by name.
var areas = []string{
	"ERR", "MSG", "SEND", "ENT", "STAT", "IDLE", "CNT", "RECV", "LOCK", "SETTLE", "DC", "SESS", "RR", "TTL", "DLQ", "SCHED",
	"DEFER", "DUP", "PEEK", "TOPIC", "RULE", "CORR", "SQL", "ACT", "FWD", "BATCH", "TX", "QUOTA", "THR", "COMP", "PURGE", "AUTH",
	"REST", "DAPR",
}

func order(a, b *rule) int {
	place := func(r *rule) int {
		if at := slices.Index(areas, r.area); at >= 0 {
			return at
		}
		return len(areas)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.area, b.area), cmp.Compare(a.number, b.number), cmp.Compare(a.suffix, b.suffix))
}

func write(rules map[string]*rule) string {
	var out strings.Builder
	out.WriteString("# Rules and their tests\n\n" +
		"Made by `make rules` from a run of all tests; do not edit. A rule stands here when a passing test is named after it.\n\n" +
		"*Redis* and *memory* are the two stores, which run the same tests; *wire* is through gRPC and HTTP; *process* is the built\n" +
		"binary; *unit* is a part by itself.\n")
	area := ""
	for _, r := range slices.SortedFunc(maps.Values(rules), order) {
		if r.area != area {
			area = r.area
			fmt.Fprintf(&out, "\n## %s\n\n| Rule | Proved on | Tests |\n|---|---|---|\n", area)
		}
		on := map[string]bool{}
		for _, places := range r.tests {
			maps.Copy(on, places)
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", r.id(), strings.Join(slices.Sorted(maps.Keys(on)), ", "),
			strings.Join(slices.Sorted(maps.Keys(r.tests)), ", "))
	}
	return out.String()
}

var row = regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+[a-z]?) \|`)

// compare says what is wrong with the page: first the rules that lost their tests.
func compare(present, wanted string, rules map[string]*rule) error {
	var lost []string
	for _, m := range row.FindAllStringSubmatch(present, -1) {
		if rules[m[1]] == nil {
			lost = append(lost, m[1])
		}
	}
	switch {
	case len(lost) > 0:
		return fmt.Errorf("no passing test is named after %s", strings.Join(lost, ", "))
	case present != wanted:
		return fmt.Errorf("the page is out of date; run make rules\n%s", difference(present, wanted))
	default:
		return nil
	}
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
