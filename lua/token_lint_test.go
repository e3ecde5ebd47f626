package lua

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofTokens are what a script may get of tokens that clients bring: names under which it finds something. Anything else
// about a message, its size above all, comes from what Redis has.
var ofTokens = []string{"now", "sub", "token", "lock", "id"}

// besides are arguments of settle scripts that are no part of a token, but what the caller wants or the store has
// worked out.
var besides = []string{"delay_ms", "skip", "count", "reason", "description", "change"}

var argumentNames = regexp.MustCompile(`^-- ARGV\[[^\]]*\] +((?:[a-z_]+(?: \.\.\.)? )+) *(?:int|str)\b`)

// A script that takes the locks of clients takes nothing else out of their tokens.
func TestLOCK_2_TokensAreForFindingOnly(t *testing.T) {
	t.Parallel()
	for name, source := range sources(t) {
		var names []string
		for line := range strings.Lines(source) {
			if m := argumentNames.FindStringSubmatch(line); m != nil {
				names = append(names, strings.Fields(strings.ReplaceAll(m[1], "...", ""))...)
			}
		}
		if !slices.Contains(names, "lock") {
			continue
		}
		for _, argument := range names {
			if !slices.Contains(ofTokens, argument) && !slices.Contains(besides, argument) {
				t.Errorf("%s takes %s beside locks of clients: find it out in Redis, or say here that it is not part of a token", name, argument)
			}
		}
	}
}

var (
	deletes   = regexp.MustCompile(`redis\.call\("XDEL", [\w.]+, (.*)\)`)
	statement = regexp.MustCompile(`^\s*redis\.call\("XDEL"`)
)

// certain are the ids that are certainly there: one that was just read from the log, and those that chunks has.
var certain = []string{"entry[1]", "chunk.id", "unpack(over)"}

// Only an id that was just read is certainly there. Of any other the answer of XDEL is looked at.
func TestLOCK_2_DeletionsAreCounted(t *testing.T) {
	t.Parallel()
	found := 0
	for name, source := range sources(t) {
		for line := range strings.Lines(source) {
			code, _, _ := strings.Cut(line, "--")
			m := deletes.FindStringSubmatch(code)
			if m == nil {
				continue
			}
			found++
			if statement.MatchString(code) && !slices.Contains(certain, m[1]) {
				t.Errorf("%s: look at how many XDEL has deleted of %s, or read the entry first", name, m[1])
			}
		}
	}
	if found < 2 {
		t.Error("there is nothing to check")
	}
}
