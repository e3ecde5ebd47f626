package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Chart is a list of horizontal bars on one axis.
type Chart struct {
	Title, Unit string
	Legend      []string // names of the parts of a bar; nil when bars have one part
	Bars        []Bar
}

// Bar is one line. Its length is the sum of its parts.
type Bar struct {
	Label     string
	Parts     []float64 // in the order of the legend
	Low, High float64   // of the sum, drawn as a whisker unless both are 0
}

func (b Bar) sum() (sum float64) {
	for _, part := range b.Parts {
		sum += part
	}
	return sum
}

// Lengths in pixels.
const (
	width, labels, values = 760, 210, 90 // of the whole, of the labels on the left, of the numbers on the right
	row, thickness        = 26, 16
	top, legendHeight     = 36, 22
	bottom                = 44
)

// colors have enough contrast to a white and to a black page.
var colors = []string{"#3b7dd8", "#d9822b", "#3a9b5c", "#b0569e", "#8a8f98"}

const style = `text{font:12px system-ui,sans-serif;fill:#24292f}` +
	`.title{font-size:14px;font-weight:600}.grid{stroke:#d0d7de}.whisker{stroke:#24292f;stroke-width:1.5}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#3d444d}.whisker{stroke:#e6edf3}}`

// Write draws the chart.
func (c Chart) Write(out io.Writer) error {
	_, err := io.WriteString(out, c.svg())
	return err
}

func (c Chart) svg() string {
	var b strings.Builder
	head := top
	if len(c.Legend) > 0 {
		head += legendHeight
	}
	foot := head + row*len(c.Bars)
	fmt.Fprintf(
		&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		width, foot+bottom, width, foot+bottom,
	)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(c.Title), style)
	text(&b, 8, 20, "start", "title", c.Title)
	for i, name := range c.Legend {
		x := labels + i*120
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/>`+"\n", x, top, color(i))
		text(&b, x+18, top+10, "start", "", name)
	}
	step := c.step()
	scale := float64(width-labels-values) / (step * math.Ceil(c.longest()/step))
	for at := 0.0; at <= c.longest()+step*0.999; at += step {
		x := labels + at*scale
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", x, head, x, foot)
		text(&b, int(x), foot+16, "middle", "", number(at))
	}
	text(&b, labels+(width-labels-values)/2, foot+34, "middle", "", c.Unit)
	for i, bar := range c.Bars {
		bar.draw(&b, head+i*row, scale)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (b Bar) draw(out *strings.Builder, y int, scale float64) {
	text(out, labels-8, y+17, "end", "", b.Label)
	x := float64(labels)
	for i, part := range b.Parts {
		fmt.Fprintf(
			out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y+5, part*scale, thickness, color(i),
		)
		x += part * scale
	}
	if b.High > 0 {
		low, high, middle := labels+b.Low*scale, labels+b.High*scale, y+5+thickness/2
		fmt.Fprintf(
			out, `<path class="whisker" fill="none" d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8"/>`+"\n", low, middle, high, low,
			middle-4, high, middle-4,
		)
		x = max(x, high)
	}
	text(out, int(x)+6, y+17, "start", "", number(b.sum()))
}

// longest is the largest value that is drawn.
func (c Chart) longest() (longest float64) {
	for _, bar := range c.Bars {
		longest = max(longest, bar.sum(), bar.High)
	}
	if longest == 0 {
		return 1
	}
	return longest
}

// step returns the distance between two lines of the grid: 1, 2 or 5 times a power of ten, at most eight lines.
func (c Chart) step() float64 {
	power := math.Pow(10, math.Floor(math.Log10(c.longest()/8)))
	steps := []float64{power, 2 * power, 5 * power, 10 * power}
	at := slices.IndexFunc(steps, func(step float64) bool { return c.longest()/step <= 8 })
	return steps[max(at, 0)]
}

func color(i int) string { return colors[i%len(colors)] }

// number writes thousands apart, and three digits of what is smaller.
func number(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%.3g", n)
	}
	return fmt.Sprintf("%d,%03d", int(math.Round(n))/1000, int(math.Round(n))%1000)
}

func text(b *strings.Builder, x, y int, anchor, class, content string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, class, escape(content))
}

func escape(content string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(content)) // a Builder takes everything
	return b.String()
}
