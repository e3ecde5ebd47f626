package figures

import (
	"maps"
	"slices"
	"time"
)

// Result is what one workload of one run measured, in all its rounds.
type Result struct {
	Run      time.Time `json:"run"`    // when the run began, the same for all that took turns in it
	Commit   string    `json:"commit"` // of the repository, with "-dirty" when files were changed
	Machine  string    `json:"machine"`
	Load     float64   `json:"loadAverage"` // of the last minute before the run; above 0.5, other work ran
	Workload string    `json:"workload"`
	// Versions are those of the programs and libraries that took part; Settings are how they ran.
	Versions map[string]string `json:"versions"`
	Settings map[string]string `json:"settings"`
	Rounds   []Round           `json:"rounds"`
}

// Round is what one round measured. What a workload does not measure is absent.
type Round struct {
	Rate   float64            `json:"messagesPerSecond,omitempty"`
	CPU    map[string]float64 `json:"cpuMicrosecondsPerMessage,omitempty"` // by process
	Values map[string]float64 `json:"values,omitempty"`                    // anything else, by name and unit
}

// TotalCPU is the processor time of all processes for a message, in microseconds.
func (r Round) TotalCPU() (sum float64) {
	for _, us := range r.CPU {
		sum += us
	}
	return sum
}

// Rate is the number of messages a second.
func Rate(r Round) float64 { return r.Rate }

// TotalCPU is Round.TotalCPU.
func TotalCPU(r Round) float64 { return r.TotalCPU() }

// CPU returns a function that reads the processor time of one process.
func CPU(process string) func(Round) float64 {
	return func(r Round) float64 { return r.CPU[process] }
}

// Value returns a function that reads another measure.
func Value(name string) func(Round) float64 {
	return func(r Round) float64 { return r.Values[name] }
}

// Has reports whether a value was measured.
func (r Result) Has(name string) bool {
	if len(r.Rounds) == 0 {
		return false
	}
	_, is := r.Rounds[0].Values[name]
	return is
}

// Of returns the spread of one measure over the rounds.
func (r Result) Of(measure func(Round) float64) Spread {
	values := make([]float64, len(r.Rounds))
	for i, round := range r.Rounds {
		values[i] = measure(round)
	}
	return SpreadOf(values)
}

// Ratio returns the spread of the ratios to another result of the same run, round by round: rounds that were neighbours
// had the same machine.
func (r Result) Ratio(other Result, measure func(Round) float64) Spread {
	values := make([]float64, min(len(r.Rounds), len(other.Rounds)))
	for i := range values {
		values[i] = measure(r.Rounds[i]) / measure(other.Rounds[i])
	}
	return SpreadOf(values)
}

// Processes returns the names of the processes whose processor time was measured.
func (r Result) Processes() []string {
	if len(r.Rounds) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Rounds[0].CPU))
}
