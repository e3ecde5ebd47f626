// Package version knows which version of Sidebus this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// linked is set at link time from git describe; see the Makefile.
var linked = ""

// commit is set at link time; see the Makefile.
var commit = ""

// Commit returns the commit. Without one from the linker it is what the Go tool records when it builds in a repository.
func Commit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}

// Text returns the version. Without one from the linker it is what "go install module@version" records.
func Text() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unreleased"
}

// Line returns version, Go release and platform.
func Line() string {
	return fmt.Sprintf("sidebus %s (%s, %s/%s)", Text(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
