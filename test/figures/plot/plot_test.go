package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

var chart = Chart{
	Title: "CPU of <one> & all", Unit: "us a message", Legend: []string{"client", "server"},
	Bars: []Bar{
		{Label: "first", Parts: []float64{10, 30}, Low: 35, High: 50},
		{Label: "second \"quoted\"", Parts: []float64{1200.4, 0}},
		{Label: "nothing", Parts: nil},
	},
}

// elements reads an SVG as XML and returns what the elements of one name say.
func elements(t *testing.T, svg, name string) (texts []string, attributes []map[string]string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts, attributes
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != name {
			continue
		}
		all := map[string]string{}
		for _, a := range start.Attr {
			all[a.Name.Local] = a.Value
		}
		attributes = append(attributes, all)
		var text string
		if name == "text" {
			if err := decoder.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
		}
		texts = append(texts, text)
	}
}

func draw(t *testing.T, c Chart) string {
	t.Helper()
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChartIsWellFormedAndLabelled(t *testing.T) {
	t.Parallel()
	svg := draw(t, chart)
	texts, _ := elements(t, svg, "text")
	all := "\n" + strings.Join(texts, "\n") + "\n"
	for _, want := range []string{chart.Title, chart.Unit, "client", "server", "first", "second \"quoted\"", "nothing", "1,200", "40", "0", "600"} {
		if !strings.Contains(all, "\n"+want+"\n") {
			t.Errorf("no text %q in %q", want, texts)
		}
	}
	if !strings.Contains(svg, "prefers-color-scheme:dark") {
		t.Error("no colours for dark pages")
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	t.Parallel()
	_, rects := elements(t, draw(t, Chart{Bars: []Bar{{Parts: []float64{10}}, {Parts: []float64{5}}}}), "rect")
	if len(rects) != 2 || rects[0]["width"] != "460.0" || rects[1]["width"] != "230.0" {
		t.Errorf("bars: %v", rects)
	}
}

func TestEmptyChartIsWellFormed(t *testing.T) {
	t.Parallel()
	elements(t, draw(t, Chart{Title: "none"}), "rect")
}

func TestGridHasAtMostEightSteps(t *testing.T) {
	t.Parallel()
	for _, longest := range []float64{0.003, 0.9, 1, 7, 8, 9, 99, 1234, 999_999} {
		step := Chart{Bars: []Bar{{Parts: []float64{longest}}}}.step()
		if n := longest / step; n > 8 || n < 1.5 {
			t.Errorf("%v has %v steps of %v", longest, n, step)
		}
	}
}
