package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sidebus/sidebus/redisstore"
)

// storeFiles are the files that set up a store.
func storeFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"../deploy/compose/*.yaml", "../deploy/kubernetes/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 3 {
			t.Fatalf("%s: %q, %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(text)
		}
	}
	return files
}

var (
	storeURL    = regexp.MustCompile(`SIDEBUS_STORE[=:]\s*(\S+)`)
	storeOfPage = regexp.MustCompile("`(rediss?(?:\\+\\w+)?://[^`<. ]+[^`<]*)`")
)

// The files and the page name stores as the sidecar reads them, and keep what they are given.
func TestStoresAreNamedAsTheSidecarReadsThem(t *testing.T) {
	t.Parallel()
	urls := map[string]string{}
	for name, text := range storeFiles(t) {
		found := storeURL.FindStringSubmatch(text)
		if found == nil && !strings.Contains(name, "kubernetes/valkey") { // which is named as one Redis is
			t.Errorf("%s does not say what SIDEBUS_STORE is", name)
		} else if found != nil {
			urls[found[1]] = name
		}
		for _, want := range []string{"appendonly", "noeviction", "maxmemory 384mb"} {
			if !strings.Contains(strings.ReplaceAll(text, "maxmemory, 384mb", "maxmemory 384mb"), want) && !strings.Contains(text, "- --"+strings.Fields(want)[0]) {
				t.Errorf("%s: Redis runs without %s", name, want)
			}
		}
	}
	page, err := os.ReadFile("../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range storeOfPage.FindAllStringSubmatch(string(page), -1) {
		urls[found[1]] = "docs/stores.md"
	}
	if len(urls) < 8 {
		t.Errorf("found only %v", urls)
	}
	for url, name := range urls {
		store, err := redisstore.Open(redisstore.Options{URL: url})
		if err != nil {
			t.Errorf("%s names the store %s: %v", name, url, err)
			continue
		}
		_ = store.Close()
	}
}

// The scripts in the files are scripts.
func TestScriptsOfStoresParse(t *testing.T) {
	t.Parallel()
	for name, text := range storeFiles(t) {
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for n := 0; ; n++ {
			var document any
			if decoder.Decode(&document) != nil {
				break
			}
			for _, script := range scriptsIn(document) {
				command := exec.Command("sh", "-n")
				command.Stdin = bytes.NewBufferString(strings.ReplaceAll(script, "$$", "$"))
				if out, err := command.CombinedOutput(); err != nil {
					t.Errorf("%s, document %d: %v\n%s", name, n, err, out)
				}
			}
		}
	}
}

// scriptsIn returns the texts of several lines of a document.
func scriptsIn(value any) (scripts []string) {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "\n") {
			scripts = append(scripts, v)
		}
	case []any:
		for _, one := range v {
			scripts = append(scripts, scriptsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			scripts = append(scripts, scriptsIn(one)...)
		}
	case nil, bool, int, float64:
	default:
		panic(fmt.Sprintf("%T", value))
	}
	return scripts
}
