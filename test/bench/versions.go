package main

import (
	"runtime/debug"
	"strings"
)

// moduleVersion returns the version of a module that is linked into this program.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == path {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}
