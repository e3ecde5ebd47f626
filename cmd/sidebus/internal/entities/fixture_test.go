package entities

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// read reads entities from a text called "f".
func read(text string) (*Set, error) {
	top, err := yamlfile.Parse("f", []byte(text))
	if err != nil {
		return nil, err
	}
	return Read(top, func(key string) bool { return key == "store" })
}

func mustRead(t *testing.T, text string) *Set {
	t.Helper()
	set, err := read(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := set.Check(t.Context()); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return set
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// yamlOf writes a set.
func yamlOf(t *testing.T, set *Set) string {
	t.Helper()
	var text bytes.Buffer
	if err := set.WriteYAML(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func exported(t *testing.T, api sidebusv1.AdminClient, prefix string) string {
	t.Helper()
	set, err := Export(t.Context(), api, prefix, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return yamlOf(t, set)
}

func planOf(t *testing.T, api sidebusv1.AdminClient, text string) *Plan {
	t.Helper()
	plan, err := mustRead(t, text).Plan(t.Context(), api, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// apply carries out a file and gives the resources that were told of, new ones with a plus.
func apply(t *testing.T, api sidebusv1.AdminClient, update bool, text string) string {
	t.Helper()
	var told []string
	err := planOf(t, api, text).CarryOut(t.Context(), api, update, func(c Change) {
		mark := ""
		switch {
		case c.IsNew:
			mark = "+"
		case len(c.Options)+len(c.Rules) > 0:
			mark = "~"
		}
		told = append(told, mark+c.Entity.Resource)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(told, " ")
}
