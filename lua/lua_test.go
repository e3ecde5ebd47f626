package lua

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/yuin/gopher-lua/parse"
)

// mostLines bounds the code of a flattened script. Comments and empty lines do not count: they cost Redis nothing once a
// script is loaded, and nobody should save an explanation to keep a bound. It is just above what the largest has, a
// transaction, which does what seven scripts do: see docs/decisions/0043.
const mostLines = 1900

// linesOfCode counts the lines of a script that are neither empty nor only a comment.
func linesOfCode(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			n++
		}
	}
	return n
}

func TestScriptsLoad(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) == 0 {
		t.Fatal("no scripts")
	}
	for name, s := range scripts {
		if _, err := parse.Parse(strings.NewReader(strings.SplitN(s.Text, "\n", 2)[1]), name); err != nil {
			t.Errorf("%s does not parse: %v", name, err)
		}
		if n := linesOfCode(s.Text); n > mostLines {
			t.Errorf("%s flattens to %d lines of code, at most %d are allowed", name, n, mostLines)
		}
	}
}

// A script must never do these: they walk the whole database, end it, or reach past the declared keys.
var forbidden = regexp.MustCompile(`(?i)redis\.call\(\s*"(keys|flushall|flushdb|select|randomkey|scan|script|eval)"|cjson|cmsgpack|struct\.|os\.time`)

// A command must be a literal, so that what a script does can be read and restricted.
var literalCall = regexp.MustCompile(`redis\.p?call\(\s*[^"\s]`)

// A version is a random number: a counter comes again after Redis forgot, while sidecars and clients remember what it
// stood for.
var countedVersion = regexp.MustCompile(`"HINCRBY"[^\n]*(version|incarnation|nonce|token)`)

func TestScriptsKeepTheRules(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range scripts {
		if m := forbidden.FindString(s.Text); m != "" {
			t.Errorf("%s uses %s", name, m)
		}
		if m := literalCall.FindString(s.Text); m != "" {
			t.Errorf("%s calls a computed command: %s", name, m)
		}
		if m := countedVersion.FindString(s.Text); m != "" {
			t.Errorf("%s counts a version, which comes again after Redis forgot (DUR-4): %s", name, m)
		}
		if n := strings.Count(s.Text, `redis.call("TIME")`); n > 1 {
			t.Errorf("%s reads the clock in %d places", name, n)
		}
	}
}

// The status words a script answers are the ones its header declares.
func TestStatusesAreDeclared(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	// These reasons are for one call of several: a script answers with those that can come about there.
	var reasons []string
	for _, name := range []string{"intake/refuse", "topic/full_subscription"} {
		text, err := fs.ReadFile(files, "lib/"+name+".lua")
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, string(text), "")
	}
	without := strings.NewReplacer(reasons...)
	word := regexp.MustCompile(`return \{ "([A-Z_]+)"`)
	for name, s := range scripts {
		for _, m := range word.FindAllStringSubmatch(without.Replace(s.Text), -1) {
			declared := s.HasStatus(m[1]) || strings.Contains(s.Text, "--         "+m[1])
			if !declared {
				t.Errorf("%s answers %s, which its header does not declare", name, m[1])
			}
		}
	}
}

// How scripts behave when Redis is out of memory is part of their contract: what puts messages in is refused, what
// takes them out goes on (reliability of a full Redis).
func TestFlagsLetAFullRedisDrain(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"create_entity": "", "create_subscription": "", "create_rule": "", "replace_rule": "", "update_entity": "", "register_name": "",
		"create_entity_in_partition": "allow-oom", "create_subscription_in_partition": "allow-oom",
		"update_entity_in_partition": "allow-oom", "register_name_in_partition": "allow-oom",
		"send": "", "publish": "", "transact": "", "transact_settling": "allow-oom", "activate": "",
		"get_entity": "no-writes", "get_suspended": "no-writes", "list_names": "no-writes", "list_subscriptions": "no-writes", "list_rules": "no-writes",
		"routes": "no-writes", "due": "allow-oom", "topic_runtime": "no-writes",
		"set_version": "allow-oom", "comparison": "no-writes", "note_compared": "allow-oom", "note_deletion": "allow-oom",
		"begin_removal": "allow-oom", "cancel_removal": "allow-oom", "suspend": "allow-oom", "resume": "allow-oom",
		"receive": "allow-oom", "complete": "allow-oom", "complete_and_receive": "allow-oom", "abandon": "allow-oom", "release": "allow-oom",
		"dead_letter": "allow-oom", "renew_locks": "allow-oom", "peek": "allow-oom", "pass_on": "allow-oom",
		"source_runtime": "allow-oom", "delete_queue": "allow-oom", "delete_subscription": "allow-oom", "delete_topic": "allow-oom",
		"delete_rule": "allow-oom", "release_left": "allow-oom", "unregister_name": "allow-oom", "bar_name": "allow-oom", "ticket": "no-writes", "note_use": "allow-oom",
		"resubmit": "", "cancel_scheduled": "allow-oom", "defer": "allow-oom", "reactivate": "allow-oom",
		"receive_by_number": "allow-oom", "purge": "allow-oom", "delete_by_number": "allow-oom", "sweep": "allow-oom",
		"accept_session": "allow-oom", "accept_next_session": "allow-oom", "renew_session_lock": "allow-oom",
		"release_unanswered": "allow-oom", "close_session": "allow-oom", "get_session_state": "allow-oom", "set_session_state": "", "clear_session_state": "allow-oom", "list_sessions": "allow-oom",
		"receivers":       "allow-oom",
		"unblock_session": "allow-oom", "dead_letter_rest": "allow-oom", "turn": "allow-oom", "complete_in_sessions": "allow-oom",
		"begin_transfer": "allow-oom", "begin_resubmission": "", "arrive": "", "arrive_in_topic": "", "end_transfer": "allow-oom", "destination": "no-writes",
		"renumber_transfer": "allow-oom", "open_transfers": "allow-oom", "old_arrivals": "no-writes", "forget_arrivals": "allow-oom",
		"lease_sweep": "allow-oom", "advance_sweep": "allow-oom", "set_alarm": "allow-oom", "take_alarms": "allow-oom", "move_alarm": "allow-oom",
		"lease_reading": "allow-oom", "share_reading": "allow-oom",
	}
	for name, s := range scripts {
		first, _, _ := strings.Cut(s.Text, "\n")
		flags, known := want[name]
		if !known {
			t.Errorf("%s: decide what it does on a full Redis and write it here", name)
		}
		if got := strings.TrimPrefix(strings.TrimPrefix(first, "#!lua"), " flags="); got != flags {
			t.Errorf("%s has flags %q, want %q", name, got, flags)
		}
		if s.ReadOnly != (flags == "no-writes") {
			t.Errorf("%s: ReadOnly is %v", name, s.ReadOnly)
		}
	}
}

// mostColumns is how long a line of Lua may be.
const mostColumns = 120

func TestLinesFit(t *testing.T) {
	t.Parallel()
	for name, source := range sources(t) {
		number := 0
		for line := range strings.Lines(source) {
			number++
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > mostColumns {
				t.Errorf("%s:%d has %d columns", name, number, n)
			}
		}
	}
}

// Nothing is stripped: every line of a script and of what it includes is in the text that Redis gets.
func TestFlattenKeepsEveryLine(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range scripts {
		source, err := fs.ReadFile(files, strings.TrimSuffix(strings.TrimSuffix(name, "_settling"), InPartition)+".lua")
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitAfterSeq(string(source), rareMark) {
			if n := strings.Count(s.Text, part); n != 1 {
				t.Errorf("%s: %d times in its text, want once: %.80s", name, n, part)
			}
		}
		for _, lib := range includesOf(s.Text) {
			text, err := fs.ReadFile(files, "lib/"+lib+".lua")
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(s.Text, string(text)); n != 1 {
				t.Errorf("%s holds lib/%s %d times", name, lib, n)
			}
		}
	}
}

func TestEveryLibIsUsed(t *testing.T) {
	t.Parallel()
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	libs, err := fs.Glob(files, "lib/*/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range libs {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "lib/"), ".lua")
		used := false
		for _, s := range scripts {
			used = used || strings.Contains(s.Text, "local function "+path.Base(name)+"(")
		}
		if !used {
			t.Errorf("%s is used by no script", file)
		}
	}
}

const goodHeader = "-- op: does it.\n-- Reads: a.  Writes: a.\n--\n-- KEYS[1] a  str  x\n-- ARGV[1] b  str  y\n--\n" +
	"-- Returns\n--   OK\n-- Cost: O(1)\n"

func TestBadScriptsAreRefused(t *testing.T) {
	t.Parallel()
	use := "local a, b = KEYS[1], ARGV[1]\n"
	cases := map[string]struct{ script, lib, want string }{
		"good":             {goodHeader + use, "", ""},
		"perhaps none":     {strings.Replace(goodHeader, "ARGV[1]", "ARGV[1..?]", 1) + use, "", ""},
		"wrong name":       {strings.Replace(goodHeader, "op:", "other:", 1) + use, "", "line 1"},
		"no cost":          {strings.Replace(goodHeader, "-- Cost: O(1)\n", "", 1) + use, "", "Cost"},
		"unused argument":  {goodHeader + "local a = KEYS[1]\n", "", "ARGV[1] b is declared and never used"},
		"undeclared key":   {goodHeader + use + "local c = KEYS[2]\n", "", "KEYS2 is used and not declared"},
		"variable index":   {goodHeader + use + "local c = ARGV[a]\n", "", "nothing repeats"},
		"gap in header":    {strings.Replace(goodHeader, "ARGV[1]", "ARGV[2]", 1) + use, "", "after 0 others"},
		"unknown flag":     {strings.Replace(goodHeader, "--\n-- KEYS", "-- Flags: fast\n--\n-- KEYS", 1) + use, "", "unknown flag"},
		"unknown include":  {goodHeader + "--@include nothing\n" + use, "", "unknown include"},
		"circular include": {goodHeader + "--@include loop\n" + use, "--@include loop\n\nlocal function loop() end\n", "circular"},
		"lib without name": {goodHeader + "--@include loop\n" + use, "local x = 1\n", "must define"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := fstest.MapFS{"op.lua": {Data: []byte(c.script)}}
			if c.lib != "" {
				from["lib/loop.lua"] = &fstest.MapFile{Data: []byte(c.lib)}
			}
			_, err := load(from, "op")
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want success", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	s := &Script{
		Keys: []Parameter{{Name: "a"}, {Name: "d", Repeats: true, optional: true}},
		Args: []Parameter{{Name: "b"}, {Name: "c", Repeats: true}},
	}
	for _, c := range []struct {
		keys, args int
		want       bool
	}{{1, 2, true}, {1, 9, true}, {1, 1, false}, {2, 2, true}, {9, 2, true}, {0, 2, false}} {
		if got := s.Accepts(c.keys, c.args); got != c.want {
			t.Errorf("Accepts(%d, %d) = %v, want %v", c.keys, c.args, got, c.want)
		}
	}
}
