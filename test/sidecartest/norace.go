//go:build !race

package sidecartest

// buildFlags are what the binary needs beyond the ordinary.
var buildFlags []string
