package semantics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// The table of options in the rules has kinds and changeability as the code has them, and each option that is not in
// the table is named by some rule.
func TestENT_16_OptionsOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/spec/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "### 3.1 Options")
	table, _, _ = strings.Cut(table, "\n[SB")
	kinds := map[semantics.Kind]string{semantics.QueueKind: "queue", semantics.TopicKind: "topic", semantics.SubscriptionKind: "sub"}
	inTable := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| (?:Sidebus: )?(\w)(\w+) \| ([^|]+) \|.*\| ([^|]+) \|$`)
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		name, on, isChangeable := strings.ToLower(m[1])+m[2], m[3], strings.HasPrefix(m[4], "yes")
		if name == "option" {
			continue
		}
		inTable[name] = true
		on = strings.NewReplacer("all three", "queue, topic, sub", "session source", "queue, sub").Replace(on)
		for kind, word := range kinds {
			if has := slices.Contains(semantics.OptionNames(kind), name); has != strings.Contains(on, word) {
				t.Errorf("%s of a %s: the code has it: %t, the page has it on %q", name, kind, has, on)
			}
		}
		if semantics.Immutable(name) == isChangeable {
			t.Errorf("%s is changeable: the page says %t", name, isChangeable)
		}
	}
	if len(inTable) < 20 {
		t.Fatalf("the page has %d options", len(inTable))
	}
	words := strings.ToLower(strings.ReplaceAll(string(page), "_", ""))
	for _, option := range semantics.AllOptions() {
		if !inTable[option.Name] && !strings.Contains(words, "`"+strings.ToLower(option.Name)) {
			t.Errorf("no rule names %s", option.Name)
		}
	}
}
