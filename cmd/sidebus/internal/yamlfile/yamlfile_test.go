package yamlfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// entries gives "place name=value" of all that a mapping of plain values holds, one a line.
func entries(t *testing.T, n Node) string {
	t.Helper()
	fields, err := n.WithColumns().Mapping("values", func(string) (bool, string) { return true, "" })
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, field := range fields {
		value, err := field.JSON()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, field.Place+" "+field.Name+"="+string(value))
	}
	return strings.Join(all, "\n")
}

func TestJSONKeepsItsPlaces(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"plain":         "{\n\t\"a\": \"x\",\n\t\"b\": 2}",
		"comments":      "{ // \"c\": 1,\n \"a\": \"x\"/* , \"d\" */,\n/**/\"b\": 2 // }\n}",
		"commas":        "{\n\"a\":\"x\",\n\"b\":2\n,\n}",
		"a mark before": "\ufeff{\n \"a\": \"x\",\n \"b\": 2}",
		"comment first": "// a file\n{\"a\": \"x\", \"b\": 2}",
	} {
		top, err := Parse("f", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := entries(t, top)
		for _, line := range strings.Split(got, "\n") {
			place, rest, _ := strings.Cut(line, " ")
			key, _, _ := strings.Cut(rest, "=")
			var row, column int
			for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
				if at := strings.Index(line, `"`+key+`"`); at >= 0 && !strings.Contains(line[:at], `"c"`) {
					row, column = i+1, at+1
					break
				}
			}
			if strings.HasPrefix(text, "\ufeff") && row == 1 {
				column += len("\ufeff")
			}
			if want := place; want != "f:"+itoa(row)+":"+itoa(column) {
				t.Errorf("%s: %q is said to be at %s, and is at line %d, column %d", name, key, place, row, column)
			}
		}
		if !strings.Contains(got, `a="x"`) || !strings.Contains(got, "b=2") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func TestJSONReadsWhatYAMLDoesNot(t *testing.T) {
	t.Parallel()
	top, err := Parse("f", []byte(`{"a":"\ud83d\ude00 \/ \u00e9 // no comment","b":"x\\","c":"/*"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "f:1:2 a=\"😀 / é // no comment\"\nf:1:45 b=\"x\\\\\"\nf:1:55 c=\"/*\""
	if got := entries(t, top); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What begins as JSON does may be YAML all the same.
func TestFlowStyleIsYAML(t *testing.T) {
	t.Parallel()
	top, err := Parse("f", []byte("{a: 1, b: http://x, c: [0x1F, 1_000, 1., .5, 2.0, yes, ~, 2024-01-01]}"))
	if err != nil {
		t.Fatal(err)
	}
	fields, err := top.Mapping("", func(string) (bool, string) { return true, "" })
	if err != nil || len(fields) != 3 || fields[1].yaml.Value != "http://x" {
		t.Fatalf("got %v, %v", fields, err)
	}
	items, err := fields[2].List("")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range items {
		text, err := item.JSON()
		if err != nil {
			t.Error(err)
		}
		got = append(got, string(text))
	}
	if want := `31 1000 1.0 0.5 2.0 "yes" null "2024-01-01"`; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

func TestErrorsOfFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"broken YAML":        {"a: [\n", "f: line 1: did not find expected node content"},
		"broken JSON":        {"{\"a\": 1\n \"b\": 2}", "f:2:2: invalid character '\"' after object key:value pair"},
		"JSON that ends":     {`{"a": [1`, "f:1:"},
		"more than one JSON": {`{"a": 1} x`, "f:1:10: there is more after the end"},
		"more than one YAML": {"{a: 1} x", "f: did not find"},
		"two documents":      {"a: 1\n---\nb: 1\n", "f:2: only one YAML document is allowed"},
		"too large":          {strings.Repeat("# nothing\n", MaxSize/10+1), "f: is larger than 16 MiB"},
	} {
		if _, err := Load("f", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	top, err := Parse("f", []byte("a: .inf\nb: .nan\nc: [1]\nd: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	fields, _ := top.Mapping("", func(string) (bool, string) { return true, "" })
	for i, want := range []string{"{type: double, value: Infinity}", "{type: double, value: Infinity}", "must have one plain value", ""} {
		if _, err := fields[i].JSON(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", fields[i].Name, err, want)
		}
	}
}

// What is written is read as it was, whatever is in it.
func TestWrittenTextsAreReadAgain(t *testing.T) {
	t.Parallel()
	check := func(t *rapid.T, text string) {
		document, err := json.Marshal(map[string]string{"k": text})
		if err != nil {
			t.Fatal(err)
		}
		top, err := FromJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		want := top.Content[1].Value
		var written bytes.Buffer
		if err := Write(&written, top); err != nil {
			t.Fatal(err)
		}
		again, err := Parse("f", written.Bytes())
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, written.String(), err)
		}
		fields, err := again.Mapping("", OneOf("k"))
		if err != nil {
			t.Fatal(err)
		}
		value, err := fields[0].Plain()
		if err != nil || fields[0].yaml.Tag != "!!str" || value != want {
			t.Fatalf("%q is written as %q and read as %s %q, %v", want, written.String(), fields[0].yaml.Tag, value, err)
		}
	}
	odd := []string{
		"", "null", "~", "5", "1e3", "true", "yes", "2024-01-01", " a", "a ", "\t", "\ta\nb", "a\n b\nc", "a\nb", "a\n", "\n", "\u2028a\nb", "\u0085x", "\x7f", "- x", "a: b",
		"# x", "a #b", "*a", "&a", "!a", "|", "'", `"`, "\ufeffa", "<<", "=",
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.SampledFrom(odd), rapid.String(), rapid.StringMatching(`[ \t\na-c:#'"-]*`)).Draw(t, "text"))
	})
}
