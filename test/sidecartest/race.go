//go:build race

package sidecartest

// buildFlags build the binary with the race detector, like the tests.
var buildFlags = []string{"-race"}
