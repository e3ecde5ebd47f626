package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const results = `
{"Action":"pass","Package":"github.com/sidebus/sidebus/redisstore","Test":"TestStore/LOCK_3_RenewSets"}
{"Action":"pass","Package":"github.com/sidebus/sidebus/semantics/memstore","Test":"TestStore/LOCK_3_RenewSets"}
{"Action":"pass","Package":"github.com/sidebus/sidebus/proxy","Test":"TestMSG_12_Types/gRPC"}
{"Action":"pass","Package":"github.com/sidebus/sidebus/semantics","Test":"TestSESS_33b_StateStays"}
{"Action":"skip","Package":"github.com/sidebus/sidebus/semantics","Test":"TestTTL_1_Skipped"}
{"Action":"pass","Package":"github.com/sidebus/sidebus/semantics","Test":"TestNothing"}
`

// spec makes a specification of a few rules and gives its folder.
func spec(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for page, text := range map[string]string{
		"semantics.md": "| <a id=\"MSG-12\"></a>**MSG-12** | types |\n- <a id=\"LOCK-3\"></a>**LOCK-3** Renew\n- <a id=\"SESS-33b\"></a>**SESS-33b** State\n" +
			"- <a id=\"TTL-1\"></a>**TTL-1** *Background.* Why\n- <a id=\"TTL-2\"></a>**TTL-2** *Not built yet.* What\n- <a id=\"TTL-3\"></a>**TTL-3** *Proved by LOCK-3, MSG-12.* How\n",
		"background.md": "| <a id=\"CON-1\"></a>CON-1 | a | b |\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, page), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestPage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "rules.md")
	if err := run(strings.NewReader(results), spec(t), page, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [LOCK-3](spec/semantics.md#LOCK-3) | Redis, memory | RenewSets |", "| [MSG-12](spec/semantics.md#MSG-12) | wire | Types |",
		"| [SESS-33b](spec/semantics.md#SESS-33b) | unit | StateStays |", "| [TTL-1](spec/semantics.md#TTL-1) | | *background* |",
		"| [TTL-2](spec/semantics.md#TTL-2) | | *not built yet* |", "| [TTL-3](spec/semantics.md#TTL-3) | | *proved by LOCK-3, MSG-12* |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "Skipped") {
		t.Error("a skipped test proves nothing")
	}
	if strings.Index(string(text), "MSG-12") > strings.Index(string(text), "LOCK-3") {
		t.Error("areas are not in the order of the specification")
	}
	if err := run(strings.NewReader(results), spec(t), page, true); err != nil {
		t.Error(err)
	}
}

func TestCheckFails(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "rules.md")
	if err := run(strings.NewReader(results), spec(t), page, false); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown rule":      {"TestNothing", "TestTTL_99_New", "TTL-99, which is not in"},
		"rule lost":         {"LOCK_3_", "LOCKED_", "named after LOCK-3, TTL-3, and"}, // one has lost its tests, the other its proof
		"rule new":          {"TestNothing", "TestTTL_2_New", "make rules"},
		"new rule is shown": {"TestNothing", "TestTTL_2_New", "+ | [TTL-2](spec/semantics.md#TTL-2) | unit | New |"},
		"test failed":       {`"pass","Package":"github.com/sidebus/sidebus/proxy"`, `"fail","Package":"p"`, "failed"},
		"package failed": {
			`"pass","Package":"github.com/sidebus/sidebus/semantics","Test":"TestNothing"`,
			`"output","Package":"s","Output":"panic: test timed out"}` + "\n" + `{"Action":"fail","Package":"s"`, "panic: test timed out",
		},
	} {
		err := run(strings.NewReader(strings.ReplaceAll(results, c.from, c.to)), spec(t), page, true)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to name %s", name, err, c.want)
		}
	}
	if err := run(strings.NewReader(""), spec(t), page, true); err == nil {
		t.Error("no results at all passed")
	}
}

// The rules themselves: each has a test in the source, which "make rules-check" expects to pass, or says why not.
func TestEveryRuleHasATestOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	l, err := readLaw("../../docs/spec")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]*rule{}
	declared := regexp.MustCompile(`(?m)^func [tT]est([A-Z]+)_(\d+)([a-z]?)_(\w+)`)
	err = filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if entry.IsDir() && entry.Name() != ".." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the project
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			add(rules, "", m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if ids := l.unproved(rules); len(ids) > 0 {
		t.Errorf("no test is named after %s; write one, or begin the rule with *Not built yet.*, *Background.* or *Proved by ...*", strings.Join(ids, ", "))
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	const ok = `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t1s\n"}
{"Action":"pass","Package":"p"}
`
	const bad = `{"Action":"output","Package":"q","Test":"TestB","Output":"noise\n"}
{"Action":"pass","Package":"q","Test":"TestB"}
{"Action":"output","Package":"q","Test":"TestC","Output":"reason\n"}
{"Action":"fail","Package":"q","Test":"TestC"}
{"Action":"output","Package":"q","Output":"FAIL\tq\n"}
{"Action":"fail","Package":"q"}
`
	for name, c := range map[string]struct{ results, want, fails string }{
		"good":     {ok, "ok  \tp\t1s\n", ""},
		"bad":      {ok + bad, "ok  \tp\t1s\nreason\nFAIL\tq\n", "failed packages: 1"},
		"no build": {`{"Action":"build-output","ImportPath":"p","Output":"p.go:1\n"}`, "p.go:1\n", "no package"},
		"nothing":  {"", "", "no package"},
	} {
		var out, kept strings.Builder
		err := show(strings.NewReader(c.results), &out, &kept)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %v, want %q", name, err, c.fails)
		}
		if out.String() != c.want || strings.TrimSpace(kept.String()) != strings.TrimSpace(c.results) {
			t.Errorf("%s: got %q, kept %q", name, out.String(), kept.String())
		}
	}
}
