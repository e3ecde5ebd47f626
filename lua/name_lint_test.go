package lua

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// alike returns what names are compared by that must not be taken for one another: their words without endings, in
// order of the alphabet.
func alike(name string) string {
	var words []string
	for word := range strings.SplitSeq(name, "_") {
		if word = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(word, "s"), "ed"), "e"); word != "of" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return strings.Join(words, "_")
}

// distance is how many letters must be put in, left out or replaced to make one name of the other, at most two.
func distance(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "" || b == "":
		return min(2, len(a)+len(b))
	case a[0] == b[0]:
		return distance(a[1:], b[1:])
	case len(a) > len(b)+1 || len(b) > len(a)+1:
		return 2
	default:
		same := func(x, y string) int {
			if x == y {
				return 1
			}
			return 2
		}
		return min(same(a[1:], b), same(a, b[1:]), same(a[1:], b[1:]))
	}
}

// No function is called nearly as another one or as a script: lock_position and lock_positions did different things.
func TestNamesAreApart(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for file := range sources(t) {
		name := path.Base(file)
		if other, taken := names[name]; taken {
			t.Errorf("%s and %s have one name", file, other)
		}
		names[name] = file
	}
	sorted := slices.Sorted(maps.Keys(names))
	for i, one := range sorted {
		for _, other := range sorted[i+1:] {
			isScript := !strings.Contains(names[one], "/") && !strings.Contains(names[other], "/")
			if !isScript && (distance(one, other) < 2 || alike(one) == alike(other)) {
				t.Errorf("%s and %s are easily taken for one another", names[one], names[other])
			}
		}
	}
	if distance("lock_position", "lock_positions") != 1 || distance("rest", "rests") != 1 || distance("weigh", "wait") < 2 ||
		alike("set_aside") != alike("aside_sets") {
		t.Error("this test does not find what it is for")
	}
}
