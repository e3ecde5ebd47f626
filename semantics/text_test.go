package semantics_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, beginning, short string
		most                   int
	}{
		{"", "", "", 0},
		{"", "", "", 3},
		{"abc", "", "...", 0},
		{"abc", "ab", "ab...", 2},
		{"abc", "abc", "abc", 3},
		{"abc", "abc", "abc", 4},
		{"äöü", "äö", "äö...", 2},
		{"äöü", "äöü", "äöü", 3},
		{"日本語", "日", "日...", 1},
		{"\xffab", "\xff", "\xff...", 1}, // a broken character counts as one
		{"a\xc3", "a\xc3", "a\xc3", 2},
	}
	for _, test := range tests {
		if got := semantics.Beginning(test.text, test.most); got != test.beginning {
			t.Errorf("Beginning(%q, %d) = %q, want %q", test.text, test.most, got, test.beginning)
		}
		if got := semantics.ShortenTo(test.text, test.most); got != test.short {
			t.Errorf("ShortenTo(%q, %d) = %q, want %q", test.text, test.most, got, test.short)
		}
	}
}

func TestShortenedTextsAreValidInErrors(t *testing.T) {
	t.Parallel()
	for _, character := range []string{"a", "ü", "語", "😀"} {
		for before := range 4 { // a cut after a number of bytes would be inside a character for some
			text := strings.Repeat("-", before) + strings.Repeat(character, 100)
			got := semantics.Shorten(text)
			beginning, isShort := strings.CutSuffix(got, "...")
			if !isShort || !strings.HasPrefix(text, beginning) {
				t.Errorf("Shorten(%q) = %q, want its beginning and \"...\"", text, got)
			}
			if !utf8.ValidString(got) || utf8.RuneCountInString(beginning) != 80 {
				t.Errorf("Shorten(%q) = %q, want 80 whole characters", text, got)
			}
		}
	}
	for _, text := range []string{"", "a", strings.Repeat("é", 80)} {
		if got := semantics.Shorten(text); got != text {
			t.Errorf("Shorten(%q) = %q, want the text", text, got)
		}
	}
}
