// Command luaflat prints one script as Redis gets it, with the line numbers that Redis' error messages use.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/lua"
)

func main() {
	scripts, err := lua.Scripts()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	name := ""
	if len(os.Args) == 2 {
		name = os.Args[1]
	}
	script, ok := scripts[name]
	if !ok {
		fmt.Fprintf(
			os.Stderr, "no script %q; say S=NAME with one of: %s\n", name,
			strings.Join(slices.Sorted(maps.Keys(scripts)), " "),
		)
		os.Exit(2)
	}
	number := 0
	for line := range strings.Lines(script.Text) {
		number++
		fmt.Printf("%4d  %s", number, line)
	}
}
