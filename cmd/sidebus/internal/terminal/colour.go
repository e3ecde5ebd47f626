package terminal

import "os"

// Style is the way a piece of text is shown on a terminal.
type Style string

// Styles of texts.
const (
	Bold   Style = "1"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// hasColours reports whether the environment permits colours: see https://no-color.org.
func hasColours() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// Paint returns a text for stdout in a style, which is left out unless stdout is a terminal that may show colours.
func (s Streams) Paint(style Style, text string) string { return paint(s.HasColours, style, text) }

// PaintError is Paint for stderr.
func (s Streams) PaintError(style Style, text string) string {
	return paint(s.HasErrorColours, style, text)
}

func paint(hasColours bool, style Style, text string) string {
	if !hasColours || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
