package filter_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func TestSQL_14_Like(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`color LIKE 'red'`, T},
		{`color LIKE 'Red'`, F},
		{`color LIKE 're'`, F},
		{`color LIKE 'redd'`, F},
		{`color LIKE '%'`, T},
		{`color LIKE '%%'`, T},
		{`color LIKE 'r%'`, T},
		{`color LIKE '%d'`, T},
		{`color LIKE '%e%'`, T},
		{`color LIKE 'r%d'`, T},
		{`color LIKE 'red%'`, T},
		{`color LIKE '%red'`, T},
		{`color LIKE 'r%x'`, F},
		{`color LIKE 'e%'`, F},
		{`color LIKE '%e'`, F},
		{`color LIKE 'red%d'`, F},
		{`color LIKE '%r%e%d%'`, T},
		{`color LIKE '%d%e%'`, F},
		{`color LIKE '___'`, T},
		{`color LIKE '__'`, F},
		{`color LIKE '____'`, F},
		{`color LIKE 'r_d'`, T},
		{`color LIKE '_e_'`, T},
		{`color LIKE '%_'`, T},
		{`color LIKE '_%'`, T},
		{`color LIKE '%____%'`, F},
		{`color LIKE '___%'`, T},
		{`color LIKE '%___'`, T},
		{`color LIKE '%_d'`, T},
		{`color LIKE '%_r%'`, F},
		{`color LIKE ''`, F},
		{`empty LIKE ''`, T},
		{`empty LIKE '%'`, T},
		{`empty LIKE '_'`, F},
		{`empty LIKE '%_'`, F},
		{`color NOT LIKE 'r%'`, F},
		{`color NOT LIKE 'b%'`, T},
		{`'aab' LIKE '%ab'`, T},
		{`'aaab' LIKE 'a%ab'`, T},
		{`'ab' LIKE 'ab%b'`, F},
		{`'aba' LIKE 'ab%ba'`, F},
		{`'abcabd' LIKE '%ab_'`, T},
		{`'xabyabz' LIKE '%ab%abz'`, T},
		{`'aXbXc' LIKE 'a_b_c'`, T},
		{`'abab' LIKE '%a_%a_'`, T},
		{`'a%b' LIKE 'a%b'`, T},
		{`[größe] LIKE 'Ä%'`, T},
		{`größe LIKE '_rger'`, T},
		{`größe LIKE '%_____'`, T},
		{`größe LIKE '______'`, F},
		{`'😀😀' LIKE '__'`, T},
		{`'😀' LIKE '%_'`, T},
		{`'[a-z]' LIKE '[a-z]'`, T},
		{`'b' LIKE '[a-z]'`, F},
		{`'a.c' LIKE 'a.c'`, T},
		{`'abc' LIKE 'a.c'`, F},
		{`'a\b' LIKE 'a\b'`, T},
		{`'a
b' LIKE 'a_b'`, T},
		{`'a
b' LIKE '%b'`, T},
		{`[my-prop] LIKE 'it''_'`, T},
	})
}

func TestSQL_14_Escape(t *testing.T) {
	t.Parallel()
	check(t, filter.OfReceived(order()), values{"bang": semantics.String("!"), "pattern": semantics.String("a!%")}, []outcome{
		{`'a%' LIKE 'a!%' ESCAPE '!'`, T},
		{`'ab' LIKE 'a!%' ESCAPE '!'`, F},
		{`'a_' LIKE 'a!_' ESCAPE '!'`, T},
		{`'ab' LIKE 'a!_' ESCAPE '!'`, F},
		{`'a!' LIKE 'a!!' ESCAPE '!'`, T},
		{`'a!b' LIKE 'a!!_' ESCAPE '!'`, T},
		{`'ab' LIKE 'a!b' ESCAPE '!'`, T},
		{`'a!b' LIKE 'a!b'`, T},
		{`'100%' LIKE '%!%' ESCAPE '!'`, T},
		{`'100' LIKE '%!%' ESCAPE '!'`, F},
		{`'a%' LIKE 'a%%' ESCAPE '%'`, T},
		{`'ab' LIKE 'a%%' ESCAPE '%'`, F},
		{`'ab' LIKE 'a__' ESCAPE '_'`, F},
		{`'a_%' LIKE 'a__%' ESCAPE '_'`, T},
		{`'a_' LIKE 'aä_' ESCAPE 'ä'`, T},
		{`'a%' LIKE 'a!%' ESCAPE @bang`, T},
		{`'a%' LIKE @pattern ESCAPE '!'`, T},
		{`'ab' LIKE @pattern`, F},
		{`'a!b' LIKE @pattern`, T},
		{`'ab' NOT LIKE 'a!%' ESCAPE '!'`, T},
	})
}

func TestSQL_14_PatternFromTheMessage(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{Properties: values{
		"text": semantics.String("a%c"), "any": semantics.String("a%"), "esc": semantics.String("a!%c"), "bad": semantics.String("a!"), "e": semantics.String("!"), "ee": semantics.String("!!"),
		"empty": semantics.String(""), "n": semantics.Int64(5), "null": semantics.Null(), "fits": semantics.String(strings.Repeat("%", 1024)), "long": semantics.String(strings.Repeat("%", 1025)),
	}}
	check(t, filter.Of(m), nil, []outcome{
		{`text LIKE any`, T},
		{`text LIKE text`, T},
		{`text LIKE esc`, F},
		{`text LIKE esc ESCAPE e`, T},
		{`text LIKE 'a!%c' ESCAPE e`, T},
		{`'abc' LIKE esc ESCAPE '!'`, F},
		{`text LIKE 'a' + '%'`, T},
		{`text NOT LIKE any`, F},
		{`text LIKE bad`, F},
		{`text LIKE bad ESCAPE e`, U},
		{`text LIKE 'a!' ESCAPE e`, U},
		{`text NOT LIKE bad ESCAPE e`, U},
		{`text LIKE any ESCAPE ee`, U},
		{`text LIKE any ESCAPE empty`, U},
		{`text LIKE any ESCAPE n`, U},
		{`text LIKE any ESCAPE [null]`, U},
		{`text LIKE 'a%' ESCAPE lost`, U},
		{`text LIKE n`, U},
		{`n LIKE any`, U},
		{`n LIKE '5'`, U},
		{`n NOT LIKE '5'`, U},
		{`[null] LIKE '%'`, U},
		{`text LIKE fits`, T},
		{`text LIKE long`, U},
		{`text LIKE 5`, U},
		{`5 LIKE '5'`, U},
		{`TRUE LIKE '%'`, U},
	})
}

// likeOracle decides by regular expression.
func likeOracle(text, pattern string, escape rune) bool {
	var re strings.Builder
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			re.WriteString(regexp.QuoteMeta(string(r)))
			escaped = false
		case r == escape:
			escaped = true
		case r == '%':
			re.WriteString(".*")
		case r == '_':
			re.WriteString(".")
		default:
			re.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return regexp.MustCompile(`(?s)\A` + re.String() + `\z`).MatchString(text)
}

func TestSQL_14_LikeIsWhatARegexpSays(t *testing.T) {
	t.Parallel()
	plain, escaping := parse(t, `a LIKE b`, nil), parse(t, `a LIKE b ESCAPE '!'`, nil)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abäa%_")), 0, 12, -1).Draw(t, "text")
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune("aabä%%__!")), 0, 8, -1).Draw(t, "pattern")
		view := filter.Of(&semantics.Message{Properties: values{"a": semantics.String(text), "b": semantics.String(pattern)}})
		if got, err := plain.Matches(view); err != nil || got != likeOracle(text, pattern, -1) {
			t.Fatalf("%q LIKE %q is %v, %v", text, pattern, got, err)
		}
		if strings.HasSuffix(strings.ReplaceAll(pattern, "!!", ""), "!") {
			if got, err := escaping.Evaluate(view); err != nil || got != filter.Unknown {
				t.Fatalf("%q LIKE %q ESCAPE '!' is %s, %v, want UNKNOWN", text, pattern, got, err)
			}
			return
		}
		if got, err := escaping.Matches(view); err != nil || got != likeOracle(text, pattern, '!') {
			t.Fatalf("%q LIKE %q ESCAPE '!' is %v, %v", text, pattern, got, err)
		}
	})
}

// A matcher that goes back takes longer than the universe for the patterns below; one that is linear in text x pattern
// takes milliseconds. The bound is wide because machines are shared.
func TestSQL_18_LikeDoesNotGoBack(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", semantics.MaxPropertyValueSize)
	started := time.Now()
	for _, pattern := range []string{
		strings.Repeat("a%", 500) + "b", strings.Repeat("%a", 500) + "b", strings.Repeat("_%", 500) + "b", strings.Repeat("%a_", 300) + "b",
		"%" + strings.Repeat("a", 500) + "b%", "%" + strings.Repeat("a", 500) + "_b%", strings.Repeat("%_a_", 200) + "%b%",
	} {
		f := parse(t, `text LIKE '`+pattern+`'`, nil)
		if got, err := f.Matches(filter.Of(&semantics.Message{Properties: values{"text": semantics.String(text)}})); got || err != nil {
			t.Errorf("%s gives %v, %v", f, got, err)
		}
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("seven patterns took %s", took)
	}
}
