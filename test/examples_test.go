package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ranByTests are the examples that have no script of their own, with the file of the tests that run or check them.
var ranByTests = map[string]string{
	"python-consumer": "consumers_test.go", "node-consumer": "consumers_test.go", "java-consumer": "consumers_test.go",
	"kubernetes": "kubernetes_test.go", "keda": "keda/scaler_test.go",
}

// TestExamplesAreListedAndHaveTargets looks whether a reader finds each example, and can run it as the page says.
func TestExamplesAreListedAndHaveTargets(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	list, makefile, ci := readPage(t, "examples/README.md"), readPage(t, "Makefile"), readPage(t, ".ci/run")
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		name, folder := entry.Name(), filepath.Join("../examples", entry.Name())
		if !strings.Contains(list, "\n| `"+name+"/` |") {
			t.Errorf("examples/README.md does not list %s", name)
		}
		if _, err := os.Stat(filepath.Join(folder, "README.md")); err != nil {
			t.Errorf("%s has no page of its own: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(folder, "run.sh")); err != nil {
			if ranByTests[name] == "" {
				t.Errorf("%s has no run.sh, and no test runs it", name)
			}
			continue
		}
		if !strings.Contains(ci, "\nstep make "+name+"\n") {
			t.Errorf(".ci/run does not run make %s", name)
		}
		if !strings.Contains(makefile, "\n"+name+":") || !strings.Contains(makefile, "\n\texamples/"+name+"/run.sh") {
			t.Errorf("the Makefile has no target that runs examples/%s/run.sh", name)
		}
		if !strings.Contains(list, "`make "+name+"`") {
			t.Errorf("examples/README.md does not say `make %s`", name)
		}
	}
}
