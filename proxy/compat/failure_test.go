package compat

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// row is a row of the table of ERR: reason, gRPC, HTTP, compat REST. Without a number there, it cannot come here.
var row = regexp.MustCompile(`(?m)^\| ([A-Z_]+) \| [A-Z_]+ \| \d+ \| (\d+)?`)

func TestERR_1_CompatStatuses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/spec/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := row.FindAllStringSubmatch(string(page), -1)
	if len(rows) != len(statuses) || len(rows) != len(semantics.Codes()) {
		t.Errorf("the page has %d rows, for %d statuses of %d reasons", len(rows), len(statuses), len(semantics.Codes()))
	}
	for _, m := range rows {
		if got := statuses[semantics.Code(m[1])]; got == 0 || m[2] != "" && strconv.Itoa(got) != m[2] {
			t.Errorf("%s: got %d, want %s", m[1], got, m[2])
		}
	}
}
