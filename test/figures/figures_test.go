package figures

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{nil, Spread{}},
		{[]float64{4}, Spread{4, 4, 4}},
		{[]float64{3, 1, 2}, Spread{1, 2, 3}},
		{[]float64{4, 1, 2, 3}, Spread{1, 2.5, 4}},
	} {
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("SpreadOf(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestSpreadLeavesTheOrderOfRounds(t *testing.T) {
	t.Parallel()
	values := []float64{3, 1, 2}
	SpreadOf(values)
	Percentile(values, 50)
	if !reflect.DeepEqual(values, []float64{3, 1, 2}) {
		t.Errorf("values are %v now", values)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[99-i] = float64(i + 1)
	}
	for _, c := range []struct {
		values  []float64
		percent int
		want    float64
	}{
		{nil, 50, 0},
		{[]float64{7}, 0, 7},
		{[]float64{7}, 100, 7},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{[]float64{1, 2, 3}, 50, 2},
		{[]float64{1, 2, 3}, 99, 3},
	} {
		if got := Percentile(c.values, c.percent); got != c.want {
			t.Errorf("Percentile of %d values, %d %% = %v, want %v", len(c.values), c.percent, got, c.want)
		}
	}
}

func rounds(rates ...float64) (all []Round) {
	for _, rate := range rates {
		all = append(all, Round{Rate: rate, CPU: map[string]float64{"client": 1, "redis": 2}})
	}
	return all
}

func TestRatioIsTakenRoundByRound(t *testing.T) {
	t.Parallel()
	// The machine was slow in the last round, for both.
	one, other := Result{Rounds: rounds(100, 300, 10)}, Result{Rounds: rounds(50, 100, 5)}
	if got, want := one.Ratio(other, Rate), (Spread{2, 2, 3}); got != want {
		t.Errorf("ratio %v, want %v", got, want)
	}
	if got := one.Of(TotalCPU).Median; got != 3 {
		t.Errorf("processor time of all %v, want 3", got)
	}
}

var day = time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)

func result(workload string, run time.Time) Result {
	return Result{
		Run: run, Commit: "478e77b", Machine: "a processor, 2 cores", Workload: workload,
		Versions: map[string]string{"redis": "7.0.15"}, Settings: map[string]string{"body": "1 KiB"},
		Rounds: []Round{{
			Rate: 12345.6784, CPU: map[string]float64{"client": 1.5}, Values: map[string]float64{"p99 ms": 0.25, "% <1 ms": 3},
		}},
	}
}

func TestHistoryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, second := []Result{result("a", day), result("b", day)}, []Result{result("a", day.Add(time.Hour))}
	next := []Result{result("a", day.AddDate(0, 0, 1))}
	for _, results := range [][]Result{next, first, second} {
		if err := Append(folder, results); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := History(append(append(first, second...), next...)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got[0].Rounds[0].Rate != 12345.678 {
		t.Errorf("the rate is kept as %v", got[0].Rounds[0].Rate)
	}
	content, err := os.ReadFile(filepath.Join(folder, "2026-11-23.jsonl"))
	if err != nil || strings.Count(string(content), "\n") != 3 {
		t.Errorf("the file of the day has %q, %v", content, err)
	}
}

func TestReadNamesTheLineThatIsWrong(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := Append(folder, []Result{result("a", day)}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "2026-11-23.jsonl")
	content, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append(content, `{"speed":1}`+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), "2026-11-23.jsonl:2:") {
		t.Errorf("Read: %v", err)
	}
}

func TestNewestIsOneRunThatHasAll(t *testing.T) {
	t.Parallel()
	later := day.Add(time.Hour)
	h := History{result("a", day), result("b", day), result("a", later), result("c", later)}
	if got := h.Newest("a"); !got["a"].Run.Equal(later) || len(got) != 2 {
		t.Errorf("newest with a: %v", got)
	}
	if got := h.Newest("a", "b"); !got["a"].Run.Equal(day) {
		t.Errorf("newest with a and b: %v", got)
	}
	if got := h.Newest("b", "c"); got != nil {
		t.Errorf("newest with b and c: %v", got)
	}
}

func TestProcessorTimeOfAProcessIsThatOfThisOne(t *testing.T) {
	t.Parallel()
	for before := OwnCPU(); OwnCPU()-before < 30*time.Millisecond; {
	}
	if other, own := CPUOf(os.Getpid())(), OwnCPU(); other > 0 && (own-other).Abs() > 10*time.Second {
		t.Errorf("/proc has %v, the system %v", other, own)
	}
	if got := CPUOf(-1)(); got != 0 {
		t.Errorf("a process that is not there used %v", got)
	}
}

func TestVersionOf(t *testing.T) {
	t.Parallel()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	if got := VersionOf(t.Context(), goTool, "version"); !strings.HasPrefix(got, "1.") {
		t.Errorf("version of go: %q", got)
	}
	if got := VersionOf(t.Context(), "no-such-program"); got != "unknown" {
		t.Errorf("version of nothing: %q", got)
	}
}
