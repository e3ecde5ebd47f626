package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

const folder = "../../../docs/benchmarks"

// What the page and its plots show is what the history has, and nothing was changed by hand.
func TestPageAndPlotsAreThoseOfTheHistory(t *testing.T) {
	t.Parallel()
	files, err := generate(folder)
	if err != nil {
		t.Fatal(err)
	}
	plots, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(plots, filepath.Join(folder, "README.md")) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if string(content) != files[name] {
			t.Errorf("%s is not what the history has; run make bench-page", name)
		}
		delete(files, name)
	}
	for name := range files {
		t.Errorf("%s is missing; run make bench-page", name)
	}
	for _, path := range plots {
		if page, _ := os.ReadFile(filepath.Join(folder, "README.md")); !strings.Contains(string(page), "]("+filepath.Base(path)+")") {
			t.Errorf("the page does not show %s", path)
		}
	}
}

func TestFillReplacesOnlyTheBlocks(t *testing.T) {
	t.Parallel()
	const page = "before\n<!-- figures: a -->\nold\n<!-- end -->\nbetween\n<!-- figures: b -->\n<!-- end -->\nafter\n"
	got, err := fill(page, map[string]string{"a": "new", "b": "other\n"})
	want := "before\n<!-- figures: a -->\n\nnew\n\n<!-- end -->\nbetween\n<!-- figures: b -->\n\nother\n\n<!-- end -->\nafter\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if again, err := fill(got, map[string]string{"a": "new", "b": "other"}); err != nil || again != got {
		t.Errorf("filled again it is %q, %v", again, err)
	}
	if _, err := fill(page, map[string]string{"a": "new"}); err == nil {
		t.Error("a block that no table fills is accepted")
	}
	if _, err := fill(page, map[string]string{"a": "", "b": "", "c": ""}); err == nil {
		t.Error("a table without a block is accepted")
	}
}

func history(results ...figures.Result) figures.History {
	for i := range results {
		results[i].Run = time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)
	}
	return results
}

func of(workload string, rates ...float64) (r figures.Result) {
	r.Workload = workload
	for _, rate := range rates {
		r.Rounds = append(r.Rounds, figures.Round{Rate: rate})
	}
	return r
}

func TestTargetsAreReachedMissedOrNotMeasured(t *testing.T) {
	t.Parallel()
	all := targetsTable(history(of("sidebus-stream", 80, 90, 100), of("nats-jetstream", 100, 100, 100), of("asynq", 20, 20, 20)))
	for _, want := range []string{
		"| P1 | stream, rate compared with NATS JetStream | ≥ 0.75 x | 0.90 (0.80 to 1.00) x |  | reached |",
		"| P1 | stream, rate compared with asynq | ≥ 7.00 x | 4.50 (4.00 to 5.00) x |  | **missed** |",
		"| P1 | each message passes",
		"| P9 | start to the first answer | ≤ 300 ms | not measured |  |  |",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no row %q in\n%s", want, all)
		}
	}
}

func TestLimitsAreReachedBelow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound  bound
		median float64
		want   bool
	}{{atMost(2, "s"), 2, true}, {atMost(2, "s"), 2.1, false}, {atLeast(2, "s"), 2, true}, {atLeast(2, "s"), 1.9, false}} {
		if got := c.bound.isReached(figures.Spread{Median: c.median}); got != c.want {
			t.Errorf("%v with a median of %v: reached %v", c.bound, c.median, got)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{
		0.754: "0.75", 7: "7.00", 12.34: "12.3", 123.4: "123", 1234.5: "1,235", 45678: "45,678", -1386: "-1,386",
	} {
		if got := number(n); got != want {
			t.Errorf("number(%v) = %q, want %q", n, got, want)
		}
	}
}

func TestSetupListsTheRunsThatTheTablesUse(t *testing.T) {
	t.Parallel()
	h := history(of("sidebus-stream", 1), of("nats-jetstream", 1), of("asynq", 1), of("start", 1), of("start", 1), of("unused", 1))
	for i := range h {
		h[i].Run = h[i].Run.Add(time.Duration(max(0, i-2)) * time.Hour) // the first three in one run
	}
	h[0].Versions = map[string]string{"redis": "7.0.15", "grpc-go": "1.85.0"}
	text := setup(h)
	for _, want := range []string{"2026-11-23 14:00 UTC", "| `sidebus-stream` | grpc-go: 1.85.0; redis: 7.0.15 |", "`asynq`", "2026-11-23 16:00 UTC"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"15:00 UTC", "17:00 UTC", "`unused`"} {
		if strings.Contains(text, not) {
			t.Errorf("%q in\n%s", not, text)
		}
	}
}
