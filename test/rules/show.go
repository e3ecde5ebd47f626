package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// show writes what "go test" writes without -json: a line for each package, and of one that failed what the tests have
// printed that did not pass. The lines of -json go to kept as they are. It fails when a package failed, or none was
// tested.
func show(results io.Reader, out, kept io.Writer) error {
	printed := map[string]map[string]string{} // package -> test, "" for none -> what it printed
	packages, failed := 0, 0
	err := eachLine(results, func(line []byte, e event) error {
		if printed[e.Package] == nil {
			printed[e.Package] = map[string]string{}
		}
		own := printed[e.Package]
		switch {
		case e.Action == "":
			fmt.Fprintf(out, "%s\n", line)
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output":
			own[e.Test] += e.Output
		case e.Test != "" && (e.Action == "pass" || e.Action == "skip"):
			delete(own, e.Test)
		case e.Test == "" && e.Action == "fail":
			failed++
			for _, test := range slices.Sorted(maps.Keys(own)) {
				if test != "" {
					fmt.Fprint(out, own[test])
				}
			}
			fmt.Fprint(out, own[""])
		case e.Test == "" && (e.Action == "pass" || e.Action == "skip"):
			packages++
			fmt.Fprint(out, strings.TrimPrefix(own[""], "PASS\n"))
			delete(printed, e.Package)
		}
		_, err := fmt.Fprintf(kept, "%s\n", line)
		return err
	})
	switch {
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("failed packages: %d", failed)
	case packages == 0:
		return errors.New("no package was tested")
	default:
		return nil
	}
}
