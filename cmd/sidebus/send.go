package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type sendCommand struct {
	Queue string   `arg:"" help:"Where to: a queue, orders or queues/orders, or a topic, topics/news."`
	Text  []string `arg:"" optional:"" help:"Bodies, each of its own message, stored all or none. None or - reads stdin as one body."`

	File  string `name:"file" short:"f" placeholder:"FILE" help:"Read the body from a file."`
	Lines bool   `name:"lines" short:"l" help:"Each line of stdin or the file is a message; empty lines are skipped."`
	JSON  bool   `name:"json" short:"j" help:"Bodies are JSON values."`

	messageFlags
	clientSettings
}

// Run sends and prints the sequence numbers; with --lines the table is a summary.
func (s *sendCommand) Run(ctx context.Context, to terminal) error {
	template, err := s.template(time.Now())
	if err != nil {
		return err
	}
	fromStdin := s.File == "" && (len(s.Text) == 0 || len(s.Text) == 1 && s.Text[0] == "-")
	switch {
	case s.File != "" && len(s.Text) > 0:
		return misuse("--file and bodies on the command line exclude each other")
	case s.Lines && s.File == "" && !fromStdin:
		return misuse("--lines reads stdin or --file, not the command line")
	case s.MessageID != "" && (s.Lines || len(s.Text) > 1):
		return misuse("--message-id is the id of one message, and there may be several")
	}
	input := to.stdin
	if s.File != "" && s.File != "-" {
		file, err := os.Open(s.File)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read from
		input = file
	}
	return s.operate(ctx, to, func(ctx context.Context, o *operator) error {
		target := client.Resource(s.Queue)
		if to.asks && input == to.stdin && (fromStdin || s.File == "-") {
			o.note("reading from the terminal; Ctrl-D ends it")
		}
		switch {
		case s.Lines:
			return s.sendLines(ctx, o, target, template, input)
		case s.File == "" && !fromStdin:
			bodies := make([][]byte, len(s.Text))
			for i, text := range s.Text {
				bodies[i] = []byte(text)
			}
			return s.sendAll(ctx, o, target, template, bodies)
		default:
			body, err := await(ctx, func() ([]byte, error) { return io.ReadAll(input) })
			if err != nil {
				return fmt.Errorf("reading the body: %w", err)
			}
			return s.sendAll(ctx, o, target, template, [][]byte{body})
		}
	})
}

var errNoJSON = errors.New("is not valid JSON")

// message puts a body into a copy of the template: as JSON if asked for, else as text, or octets where it is none.
func (s *sendCommand) message(template *sidebusv1.Message, body []byte) (*sidebusv1.Message, error) {
	m := proto.CloneOf(template)
	switch {
	case s.JSON && (!json.Valid(body) || !utf8.Valid(body)):
		return nil, errNoJSON
	case s.JSON:
		m.Content = &sidebusv1.Message_Json{Json: string(body)}
	case utf8.Valid(body):
		m.Content = &sidebusv1.Message_Text{Text: string(body)}
	default:
		m.Content = &sidebusv1.Message_Body{Body: body}
	}
	return m, nil
}

// sendAll sends all bodies in one call and prints a row for each.
func (s *sendCommand) sendAll(ctx context.Context, o *operator, target string, template *sidebusv1.Message, bodies [][]byte) error {
	request := &sidebusv1.SendRequest{Target: target}
	for i, body := range bodies {
		m, err := s.message(template, body)
		if err != nil {
			return fmt.Errorf("body %d %w; nothing was sent", i+1, err)
		}
		request.Messages = append(request.Messages, m)
	}
	answer, err := o.Send(ctx, request)
	if err != nil {
		return err
	}
	if o.asJSON {
		return o.results(answer)
	}
	var rows [][]string
	for _, result := range answer.GetResults() {
		note := "sent"
		switch {
		case result.GetDeduplicated():
			note = "duplicate, dropped"
		case template.GetScheduledEnqueueTime().AsTime().After(time.Now()):
			note = "scheduled for " + client.Instant(template.GetScheduledEnqueueTime())
		}
		rows = append(rows, []string{strconv.FormatInt(result.GetSequenceNumber(), 10), client.OneLine(result.GetMessageId()), note})
	}
	return o.table([]string{"SEQUENCE", "MESSAGE ID", "RESULT"}, rows)
}

// results writes a line of JSON for each message that was sent.
func (o *operator) results(answer *sidebusv1.SendResponse) error {
	for _, result := range answer.GetResults() {
		if err := o.document(result); err != nil {
			return err
		}
	}
	return nil
}
