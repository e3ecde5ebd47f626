package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Absent stands in a table for what is not there.
const Absent = "-"

// WriteTable writes aligned columns. A header of nil is left out.
func WriteTable(to io.Writer, header []string, rows [][]string) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if header != nil {
		rows = append([][]string{header}, rows...)
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = Absent
			}
		}
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}

// previewLength is the most characters of a text from outside in a cell.
const previewLength = 60

// OneLine returns a text from outside in a form that neither breaks a table nor steers a terminal.
func OneLine(text string) string {
	var safe strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			safe.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		safe.WriteString(quoted[1 : len(quoted)-1])
	}
	return safe.String()
}

// Brief is OneLine of the first characters.
func Brief(text string) string {
	return OneLine(semantics.ShortenTo(text, previewLength))
}

// Body returns the beginning of a message's body.
func Body(m *sidebusv1.ReceivedMessage) string {
	switch content := m.GetContent().(type) {
	case *sidebusv1.ReceivedMessage_Text:
		return Brief(content.Text)
	case *sidebusv1.ReceivedMessage_Json:
		var line bytes.Buffer
		if json.Compact(&line, []byte(content.Json)) != nil {
			return Brief(content.Json)
		}
		return Brief(line.String())
	case *sidebusv1.ReceivedMessage_Body:
		return Octets(content.Body)
	default:
		return ""
	}
}

// Octets returns the beginning of what is a text, and the size of what is none.
func Octets(octets []byte) string {
	if utf8.Valid(octets) {
		return Brief(string(octets))
	}
	return fmt.Sprintf("(%d bytes)", len(octets))
}

// Instant returns an instant to the second, in UTC.
func Instant(at *timestamppb.Timestamp) string {
	if at == nil {
		return Absent
	}
	return at.AsTime().UTC().Format(time.RFC3339)
}

// Span returns a duration as people write it, 1d2h30m, or in seconds where Go's form does not reach.
func Span(d *durationpb.Duration) string {
	if short := d.AsDuration(); durationpb.New(short).GetSeconds() == d.GetSeconds() {
		return duration.Text(short)
	}
	return strconv.FormatInt(d.GetSeconds(), 10) + "s"
}

// Lifetime is Span of a duration that may be absent, which means never.
func Lifetime(d *durationpb.Duration) string {
	if d == nil {
		return never
	}
	return Span(d)
}

// Bytes returns a size with the unit that suits it.
func Bytes(n int64) string {
	const step = 1024
	if n < step {
		return strconv.FormatInt(n, 10) + " B"
	}
	size, unit := float64(n)/step, 0
	for ; size >= step && unit < 3; unit++ {
		size /= step
	}
	return fmt.Sprintf("%.1f %s", size, [...]string{"KiB", "MiB", "GiB", "TiB"}[unit])
}

// Count returns "1 message", "2 messages", "2 entities".
func Count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
