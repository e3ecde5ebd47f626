//go:build !race

package sidecartest

// buildFlags are further flags of the build of the binary.
var buildFlags []string
