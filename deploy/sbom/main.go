// Command sbom writes a CycloneDX software bill of materials for a Go binary. It reads the list of modules that the
// linker stored in the binary, so the document names what was linked and nothing else.
//
//	go run ./deploy/sbom BINARY FILE [VERSION]
//
// VERSION is that of the binary, which the linker does not know when the build is not "go install module@version".
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"strings"
)

// document is the part of CycloneDX 1.6 that is used here: https://cyclonedx.org/docs/1.6/json/.
type document struct {
	BOMFormat   string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return errors.New("usage: sbom BINARY FILE [VERSION]")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	if len(args) == 3 {
		info.Main.Version = args[2]
	}
	text, err := json.MarshalIndent(describe(info), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], append(text, '\n'), 0o644) //nolint:gosec // published with the binary
}

func describe(info *debug.BuildInfo) document {
	doc := document{BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1}
	doc.Metadata.Component = library(info.Main)
	doc.Metadata.Component.Type = "application"
	doc.Metadata.Component.Name = path.Base(info.Path)
	doc.Components = append(doc.Components, library(debug.Module{
		Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
	}))
	for _, dep := range info.Deps {
		switch {
		case dep.Replace == nil:
		case strings.HasPrefix(dep.Replace.Path, "."): // a module of this repository, at the same commit
			dep.Version = info.Main.Version
		default:
			dep = dep.Replace
		}
		doc.Components = append(doc.Components, library(*dep))
	}
	return doc
}

// library describes a module. The linker records "(devel)" for a module that was built from a work tree.
func library(m debug.Module) component {
	version := strings.TrimPrefix(m.Version, "(devel)")
	c := component{Type: "library", Name: m.Path, Version: version, PURL: "pkg:golang/" + m.Path}
	if version != "" {
		c.PURL += "@" + version
	}
	return c
}
