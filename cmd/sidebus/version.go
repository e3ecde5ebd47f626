package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set at link time from git describe; see the Makefile.
var version = ""

type versionCommand struct{}

// Run prints one line: version, Go release, platform.
func (versionCommand) Run(to terminal) error {
	_, err := fmt.Fprintf(to.stdout, "sidebus %s (%s, %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionText falls back on what "go install module@version" records.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unreleased"
}
