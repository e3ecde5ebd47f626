package test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The notice lists exactly the modules that are linked into the binary, on every platform of a release.
func TestNoticeListsLinkedModules(t *testing.T) {
	t.Parallel()
	linked := map[string]bool{}
	for _, system := range []string{"linux", "darwin"} {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", module+"cmd/sidebus")
		list.Env = append(list.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", system, err)
		}
		for _, path := range strings.Fields(string(out)) {
			if !strings.HasPrefix(path+"/", module) { // our own second module is under the license of the whole
				linked[path] = true
			}
		}
	}
	modules, _, _ := strings.Cut(readPage(t, "deploy/NOTICE"), "\nNotices of the modules")
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^  (\S+\.\S+/\S+)( \*)?$`).FindAllStringSubmatch(modules, -1) {
		listed = append(listed, match[1])
	}
	for path := range linked {
		if !slices.Contains(listed, path) {
			t.Errorf("deploy/NOTICE lacks %s", path)
		}
	}
	for _, path := range listed {
		if !linked[path] {
			t.Errorf("deploy/NOTICE lists %s, which is not linked", path)
		}
	}
}
