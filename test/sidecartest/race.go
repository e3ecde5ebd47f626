//go:build race

package sidecartest

// buildFlags carry the race detector of the tests over to the binary they run.
var buildFlags = []string{"-race"}
