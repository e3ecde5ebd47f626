package filter_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

var fuzzSeeds = []string{
	``, `1=1`, `sys.Label LIKE '%bus%' OR sys.Label = 'x'`, `StoreId IN ('Store1','Store2')`, `EXISTS(a) AND a IS NULL`, `NOT EXISTS(b)`, `[my-prop] = 'it''s'`,
	`price*qty > 10.5`, `a%2=0`, `p('x') = TRUE`, `-a + +(b - -5) / 2.5E-3 <> @x`, `a NOT LIKE b ESCAPE '!'`, `NOT (a OR (b AND c)) AND user."x" IS NOT NULL`, `newid() = property('sys.' + a)`,
	`((((((1))))))`, `a = 9223372036854775808`, `"" = 'ä`, `@p`, `1.e5=.5`, `- 9223372036854775808 = a`, `n NOT IN (1, t, f, @x, NULL)`, `t + t LIKE '%_' + t`, `n / n = f OR n * n > 1`,
}

var columnOf = regexp.MustCompile(`^column (\d+): .`)

func FuzzParse(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := filter.Parse(text, authorParameters)
		if err != nil {
			e := semantics.AsError(err)
			column := columnOf.FindStringSubmatch(e.Message)
			if e.Code != semantics.FilterInvalid || e.Details[semantics.DetailField] != "filter" || column == nil {
				t.Fatalf("%q gives %v", text, err)
			}
			if n, _ := strconv.Atoi(column[1]); n < 1 || n > utf8.RuneCountInString(text)+1 {
				t.Fatalf("%q has no column %d: %v", text, n, err)
			}
			return
		}
		again, err := filter.ParseLong(parsed.String(), authorParameters)
		if err != nil || !filter.SameTree(parsed, again) || again.String() != parsed.String() {
			t.Fatalf("%q is printed as %q, which is %v, %v", text, parsed, again, err)
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed, "a%", int64(3), 0.5, "2026-01-02T03:04:05Z")
	}
	f.Add(`a > t`, "-1.5", int64(-1)<<63, 1e300, "x")
	f.Fuzz(func(t *testing.T, text, s string, n int64, d float64, other string) {
		parsed, err := filter.Parse(text, authorParameters)
		if err != nil {
			return
		}
		p := filter.OfReceived(fuzzMessage(s, n, d, other))
		truth, err := parsed.Evaluate(p)
		if err != nil {
			var failure *filter.EvaluationError
			if !errors.As(err, &failure) || truth != filter.False {
				t.Fatalf("%s gives %s, %v", parsed, truth, err)
			}
		}
		if strings.Contains(parsed.String(), "newid()") {
			return
		}
		opposite, oppositeErr := mustParse(t, "NOT ("+parsed.String()+")").Evaluate(p)
		again, againErr := parsed.Evaluate(p)
		if again != truth || fmt.Sprint(againErr) != fmt.Sprint(err) || (oppositeErr == nil) != (err == nil) || err == nil && opposite != filter.True-truth {
			t.Fatalf("%s gives %s, %v, then %s, %v; NOT of it %s, %v", parsed, truth, err, again, againErr, opposite, oppositeErr)
		}
		if first := parsed.Explain(p)[0]; first.Truth != truth || (first.Err == nil) != (err == nil) {
			t.Fatalf("%s gives %s, %v, explained as %v", parsed, truth, err, first)
		}
	})
}

// fuzzMessage has the values under the names the seeds use, in every type they fit.
func fuzzMessage(s string, n int64, d float64, other string) *semantics.Received {
	properties := values{
		"n": semantics.Int64(n), "u": semantics.Uint64(uint64(n)), "f": semantics.Double(d), "t": semantics.String(s), "b": semantics.Bool(n%2 == 0), "x": semantics.Null(),
		"span": whole(semantics.TypeTimeSpan, n), "a": semantics.String(other),
	}
	for _, typ := range []semantics.ValueType{semantics.TypeDateTimeOffset, semantics.TypeDateTime, semantics.TypeUUID, semantics.TypeDecimal} {
		if v, err := semantics.TextOf(typ, other); err == nil {
			properties["a"] = v
		}
	}
	return &semantics.Received{Message: semantics.Message{Subject: s, To: other, Properties: properties}, SequenceNumber: n}
}

func mustParse(t *testing.T, text string) *filter.Filter {
	t.Helper()
	f, err := filter.ParseLong(text, authorParameters)
	if err != nil {
		if strings.Contains(err.Error(), "parentheses are open") {
			t.Skip("NOT takes it over the depth")
		}
		t.Fatalf("%s: %v", text, err)
	}
	return f
}
