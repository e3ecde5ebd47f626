package figures

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// History is all that was kept, oldest run first.
type History []Result

// Append writes the results of a run at the end of the file of its day.
func Append(folder string, results []Result) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, r := range results {
		r.round()
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	if lines.Len() == 0 {
		return errors.New("there are no results")
	}
	path := filepath.Join(folder, results[0].Run.UTC().Format(time.DateOnly)+".jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // for everybody to read
	if err != nil {
		return err
	}
	_, err = file.Write(lines.Bytes())
	return errors.Join(err, file.Close())
}

// round leaves three decimals of each number, more than a benchmark can tell apart.
func (r Result) round() {
	for i, round := range r.Rounds {
		r.Rounds[i].Rate = thousandths(round.Rate)
		for _, values := range []map[string]float64{round.CPU, round.Values} {
			for name, value := range values {
				values[name] = thousandths(value)
			}
		}
	}
}

func thousandths(n float64) float64 { return math.Round(n*1000) / 1000 }

// Read returns what the files of a folder hold.
func Read(folder string) (History, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var all History
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		number := 0
		for line := range bytes.Lines(content) {
			number++
			var r Result
			decoder := json.NewDecoder(bytes.NewReader(line))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&r); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, number, err)
			}
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Result) int { return a.Run.Compare(b.Run) })
	return all, nil
}

// Newest returns the results of the newest run that has all of some workloads, by workload; nil when there is none.
// A workload that was measured twice in a run counts with its last line.
func (h History) Newest(workloads ...string) map[string]Result {
	for i := len(h) - 1; i >= 0; i-- {
		if i+1 < len(h) && h[i].Run.Equal(h[i+1].Run) {
			continue // the run was looked at
		}
		run := map[string]Result{}
		for _, r := range h {
			if r.Run.Equal(h[i].Run) {
				run[r.Workload] = r
			}
		}
		lacks := func(workload string) bool { _, has := run[workload]; return !has }
		if !slices.ContainsFunc(workloads, lacks) {
			return run
		}
	}
	return nil
}
