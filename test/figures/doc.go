// Package figures is the form in which benchmarks keep what they measured: one line of JSON for each workload of a run,
// in docs/benchmarks/history. It has no dependencies, so that every module of the repository may use it.
package figures
