// Command page writes the figures of docs/benchmarks/README.md and its plots from the results that benchmarks keep in
// docs/benchmarks/history. A table uses the newest run that has everything that the table compares. What is between
// `<!-- figures: name -->` and `<!-- end -->` is written; all else of the page is left as it is.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sidebus/sidebus/test/figures"
)

func main() {
	folder := flag.String("folder", "docs/benchmarks", "folder with README.md and history")
	flag.Parse()
	if err := write(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := generate(folder)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil { //nolint:gosec // a page
			return err
		}
	}
	return nil
}

// generate returns the files that a folder should have, by name.
func generate(folder string) (map[string]string, error) {
	history, err := figures.Read(filepath.Join(folder, "history"))
	if err != nil {
		return nil, err
	}
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		return nil, err
	}
	filled, err := fill(string(page), map[string]string{
		"targets": targetsTable(history), "peers": peersTable(history), "store": storeTable(history),
		"dapr": daprTable(history), "cluster": clusterTable(history), "setup": setup(history),
	})
	if err != nil {
		return nil, err
	}
	files := map[string]string{"README.md": filled}
	return files, drawAll(history, files)
}
