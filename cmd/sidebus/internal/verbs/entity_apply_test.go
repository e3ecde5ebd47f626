package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/test/filetest"
)

const applied1 = `
queues:
- {name: orders, maxDeliveryCount: 10}
- {name: returns, lockDuration: 30s, forwardDeadLetteredMessagesTo: orders}
topics:
- name: news
  subscriptions:
  - {name: eu, rules: [{name: big, filter: {sql: {expression: total > @limit, parameters: {limit: 1000}}}, action: {sql: {expression: SET a = 1}}}]}
  - {name: all}
  - {name: nobody, lockDuration: 30s, rules: []}
`

// A plan is shown before anything is done, and what exists is left as it is (ENT-6).
func TestENT_6_ApplyShowsAPlanAndLeavesWhatExists(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	file := filetest.Write(t, applied1)
	apply := func(args ...string) outcome {
		return s.verb(t, nil, append([]string{"entity", "apply", "-f", file}, args...)...)
	}
	plan := `+ queue returns (lockDuration 30s, forwardDeadLetteredMessagesTo orders)
+ topic news
+ subscription topics/news/subscriptions/eu (rule big)
+ subscription topics/news/subscriptions/all
+ subscription topics/news/subscriptions/nobody (lockDuration 30s, no rules)
= 1 unchanged
`
	if got := apply("--dry-run"); got.stdout != plan || got.code != cli.Failure || !strings.Contains(got.stderr, "nothing was changed: this is a dry run") {
		t.Errorf("got %d %s%s", got.code, got.stdout, got.stderr)
	}
	s.verb(t, nil, "entity", "list", "topics").wants(t, cli.Clean, "there are no topics")
	if got := apply(); got.stdout != plan+"created 5 entities\n" || got.code != cli.Clean || got.stderr != "" {
		t.Errorf("got %d %s%s", got.code, got.stdout, got.stderr)
	}
	if got := apply(); got.stdout != "= 6 unchanged\n" || got.code != cli.Clean {
		t.Errorf("again: got %d %s%s", got.code, got.stdout, got.stderr)
	}
	if got := apply("--dry-run"); got.code != cli.Clean {
		t.Errorf("a dry run with nothing to do: got %d %s", got.code, got.stderr)
	}
	s.ok(t, "entity", "create", "other")
	s.ok(t, "entity", "create", "topics/news/subscriptions/other")
	file = filetest.Write(t, strings.NewReplacer("maxDeliveryCount: 10", "maxDeliveryCount: 3, userMetadata: \"a\\tb\"", "lockDuration: 30s, forw", "lockDuration: 45s, requiresSession: true, forw",
		"limit: 1000", "limit: 2000", "{name: all}", "{name: all, rules: [{name: some, filter: {none: {}}}]}").Replace(applied1)+"- {name: late}\n")
	differs := `~ queue orders: maxDeliveryCount 10 -> 3
~ queue orders: userMetadata "" -> a\tb
~ queue returns: lockDuration 30s -> 45s
~ queue returns: requiresSession false -> true (set at creation only)
~ rule topics/news/subscriptions/eu/rules/big: total > @limit with {"limit":1000}; SET a = 1 -> total > @limit with {"limit":2000}; SET a = 1
- rule topics/news/subscriptions/all/rules/$Default: every message
+ rule topics/news/subscriptions/all/rules/some: no message
+ topic late
= 2 unchanged
2 other entities are not in the file
`
	if got := apply(); got.stdout != differs+"created 1 entity\n" || got.code != cli.Failure ||
		got.stderr != "sidebus: 4 entities differ from the file and were not changed; --update changes what can be changed\n" {
		t.Errorf("got %d %s%s", got.code, got.stdout, got.stderr)
	}
	update := apply("--update")
	update.wants(t, cli.Failure, "queues[1].requiresSession is true and queues/returns has false; it is set at creation only", "nothing was changed")
	if !strings.Contains(update.stderr, file+":4:38: ") || update.stdout != "" {
		t.Errorf("got %s%s", update.stdout, update.stderr)
	}
	if got := decoded(t, s.ok(t, "entity", "show", "orders", "-o", "json"))[0]; got["maxDeliveryCount"] != 10.0 {
		t.Errorf("it was changed: %v", got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	file = filetest.Write(t, strings.Replace(string(text), "requiresSession: true, ", "", 1))
	apply("--update", "--dry-run").wants(t, cli.Failure, "~ queue orders: maxDeliveryCount 10 -> 3", "dry run")
	apply("--update").wants(t, cli.Clean, "~ queue orders: maxDeliveryCount 10 -> 3", "= 3 unchanged", "updated 4 entities")
	if got := apply("--update"); got.stdout != "= 7 unchanged\n2 other entities are not in the file\n" || got.code != cli.Clean {
		t.Errorf("again: got %d %s%s", got.code, got.stdout, got.stderr)
	}
	if got := decoded(t, s.ok(t, "entity", "show", "orders", "-o", "json"))[0]; got["maxDeliveryCount"] != 3.0 || got["userMetadata"] != "a\tb" {
		t.Errorf("got %v", got)
	}
}

func TestApplyAsJSON(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	apply := func(text string, args ...string) outcome {
		return s.verb(t, piping(text), append([]string{"entity", "apply", "-f", "-", "-o", "json"}, args...)...)
	}
	for _, c := range []struct {
		text string
		args []string
		code int
		want string
	}{
		{"queues: [{name: a}, {name: orders}]", []string{"--dry-run"}, cli.Failure, `{"dryRun":true,"created":["queues/a"],"updated":[],"differences":[],"unchanged":1,"others":0}`},
		{"queues: [{name: a}]", nil, cli.Clean, `{"dryRun":false,"created":["queues/a"],"updated":[],"differences":[],"unchanged":0,"others":1}`},
		{"queues: [{name: a, userMetadata: '<&>'}]", nil, cli.Failure, `{"dryRun":false,"created":[],"updated":[],"differences":[{"resource":"queues/a","option":"userMetadata","present":"","asked":"<&>"}],"unchanged":0,"others":1}`},
		{"queues: [{name: a, userMetadata: x}]", []string{"--update", "--dry-run"}, cli.Failure, `{"dryRun":true,"created":[],"updated":["queues/a"],"differences":[],"unchanged":0,"others":1}`},
		{"queues: [{name: a, userMetadata: x}]", []string{"--update"}, cli.Clean, `{"dryRun":false,"created":[],"updated":["queues/a"],"differences":[],"unchanged":0,"others":1}`},
		{"", nil, cli.Clean, `{"dryRun":false,"created":[],"updated":[],"differences":[],"unchanged":0,"others":2}`},
	} {
		if got := apply(c.text, c.args...); got.stdout != c.want+"\n" || got.code != c.code {
			t.Errorf("%s %q: got %d %s%s", c.text, c.args, got.code, got.stdout, got.stderr)
		}
	}
	s.ok(t, "entity", "apply", "-f", filetest.Write(t, "topics: [{name: t, subscriptions: [{name: s}]}]"))
	rules := apply("topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: {all: {}}}]}]}]")
	if want := `"differences":[{"resource":"topics/t/subscriptions/s","option":"rules[$Default]","present":"every message","asked":""},` +
		`{"resource":"topics/t/subscriptions/s","option":"rules[r]","present":"","asked":"every message"}]`; !strings.Contains(rules.stdout, want) {
		t.Errorf("got %s", rules.stdout)
	}
}

// What is wrong with a file is said before anything is called, so that these need no sidecar.
func TestApplyRefusesBadFiles(t *testing.T) {
	t.Parallel()
	nobody := &served{grpc: "127.0.0.1:1"}
	for name, c := range map[string]struct{ text, want string }{
		"broken YAML":    {"queues: [\n", "stdin: line 1: did not find expected node content"},
		"unknown option": {"queues:\n- {name: a, lockTime: 3s}\n", `stdin:2:13: unknown key "queues[0].lockTime"; the options of a queue are lockDuration, `},
		"bad bound":      {"queues:\n- name: a\n  lockDuration: 1s\n", "stdin:3:3: queues[0].lockDuration: ARGUMENT_OUT_OF_RANGE: lockDuration is 1s, must be 5s to 5m"},
		"bad filter": {
			"topics:\n- name: t\n  subscriptions:\n  - name: s\n    rules:\n    - {name: r, filter: {sql: {expression: 'a = '}}}\n",
			"stdin:6:7: topics[0].subscriptions[0].rules[0]: FILTER_INVALID: column 5",
		},
	} {
		got := nobody.verb(t, piping(c.text), "entity", "apply", "--file=-")
		if got.wants(t, cli.Failure, c.want); got.stdout != "" {
			t.Errorf("%s: got %s", name, got.stdout)
		}
	}
	good := filetest.Write(t, "queues: [{name: a}]")
	nobody.verb(t, nil, "entity", "apply", "-f", good).wants(t, cli.Failure, "no sidecar answers at 127.0.0.1:1")
	nobody.verb(t, nil, "entity", "apply", "-f", good+"x").wants(t, cli.Failure, "--file: open ")
	nobody.verb(t, nil, "entity", "apply").wants(t, cli.Usage, "--file")
	nobody.verb(t, nil, "entity", "export").wants(t, cli.Failure, "no sidecar answers")
	nobody.verb(t, nil, "entity", "export", "-o", "table").wants(t, cli.Usage, "--output")

	s := serveMemory(t)
	s.verb(t, piping("topics: [{name: orders}]"), "entity", "apply", "-f", "-").wants(t, cli.Failure, "stdin:1:10: topics[0]: there is a queue of this name")
	s.verb(t, piping("queues: [{name: a, forwardTo: b}]"), "entity", "apply", "-f", "-").wants(t, cli.Failure, `forwardTo is "b", and there is no such queue or topic`)
	s.verb(t, piping("# nothing\n"), "entity", "apply", "-f", "-").wants(t, cli.Clean, "1 other entity is not in the file", "- has no entities; nothing to do")
	s.verb(t, piping("store: memory\nentities:\n  queues: [{name: b}]\n"), "entity", "apply", "-f", "-").wants(t, cli.Clean, "created 1 entity")
	s.verb(t, piping("stores: memory\nentities:\n  queues: [{name: b}]\n"), "entity", "apply", "-f", "-").wants(t, cli.Failure, `stdin:1:1: unknown key "stores" beside "entities"`)
	s.verb(t, piping("topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: {sql: {expression: \"1 = 'one'\"}}}]}]}]"), "entity", "apply", "-f", "-").
		wants(t, cli.Clean, "rules[0] warning: filter: column 1")
}

// The files that the pages and the example show are valid.
func TestShownFilesOfEntities(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/entities-file.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	s := serveMemory(t)
	s.verb(t, piping(block), "entity", "apply", "-f", "-").wants(t, cli.Failure, "+ queue repairs", "created 4 entities", "1 entity differs")
	s.verb(t, nil, "entity", "apply", "-f", "../../../../examples/entities/entities.yaml").wants(t, cli.Failure, "+ topic orders-placed", "created 3 entities")
	s.verb(t, nil, "entity", "apply", "-f", "../../../../examples/entities/Config.json").wants(t, cli.Clean, "created 3 entities")
}

// What the emulator is configured with works as it is.
func TestApplyTakesTheEmulatorsFile(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "delete", "orders", "--yes")
	file := filepath.Join("..", "entities", "testdata", "Config.json")
	s.verb(t, nil, "entity", "apply", "-f", file).wants(t, cli.Clean, "created 7 entities", "Config.json:121:5: UserConfig.Logging is ignored")
	s.verb(t, nil, "entity", "apply", "-f", file).wants(t, cli.Clean, "= 7 unchanged")
	all := s.ok(t, "rule", "list", "topics/news/subscriptions/mail")
	if !strings.Contains(all, "sys.ContentType = 'application/json' (string)") || !strings.Contains(all, "count = 5 (int64)") || !strings.Contains(all, "SET sys.To = 'there'") || strings.Contains(all, "$Default") {
		t.Errorf("got %s", all)
	}
	if all := s.ok(t, "rule", "list", "topics/news/subscriptions/everything"); !strings.Contains(all, "$Default") {
		t.Errorf("got %s", all)
	}
}

// A thousand entities with odd names come back page by page, and long work says how far it is.
func TestENT_17_ManyEntitiesWithOddNames(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.ok(t, "entity", "delete", "orders", "--yes")
	long := strings.Repeat("l", 252)
	var text strings.Builder
	text.WriteString("queues:\n")
	for i := range 500 {
		fmt.Fprintf(&text, "- {name: %s/%d}\n", long, 1000+i)
	}
	text.WriteString("topics:\n- name: \"5\"\n  subscriptions:\n")
	for i := range 499 {
		fmt.Fprintf(&text, "  - {name: %d, maxDeliveryCount: 7, rules: [{name: x.y-z, filter: {correlation: {to: q%d}}}]}\n", i, i)
	}
	hurried := func(to *terminal.Streams) {
		to.Stdin, to.ProgressEvery = strings.NewReader(text.String()), time.Nanosecond
	}
	got := s.verb(t, hurried, "entity", "apply", "-f", "-", "--progress")
	got.wants(t, cli.Clean, "created 1000 entities", "sidebus: read 1 ", "sidebus: created or changed 1000 of 1000 entities (100 %), ")
	exported := s.ok(t, "entity", "export")
	if n := strings.Count(exported, "\n    - name: "+long) + strings.Count(exported, "maxDeliveryCount: 7\n          rules:\n            - name: x.y-z\n"); n != 999 {
		t.Errorf("exported %d entities", n)
	}
	s.verb(t, func(to *terminal.Streams) { to.Stdin, to.ProgressEvery = strings.NewReader(exported), time.Nanosecond }, "entity", "apply", "-f", "-", "--progress").
		wants(t, cli.Clean, "= 1000 unchanged", "sidebus: read 502 ")
	other := serveMemory(t)
	other.ok(t, "entity", "delete", "orders", "--yes")
	other.verb(t, piping(s.ok(t, "entity", "export", "-o", "json")), "entity", "apply", "-f", "-").wants(t, cli.Clean, "created 1000 entities")
	if again := other.ok(t, "entity", "export"); again != exported {
		t.Error("what was exported and applied elsewhere is another one there")
	}
	if got := s.ok(t, "entity", "export", "topics/"); strings.Contains(got, long) || !strings.HasPrefix(got, "entities:\n  topics:\n    - name: \"5\"\n") {
		t.Errorf("got %.300s", got)
	}
}
