package verbs

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

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type sendCommand struct {
	Queue string   `arg:"" help:"Queue, such as orders or queues/orders, or topic, such as topics/news."`
	Text  []string `arg:"" optional:"" help:"Bodies, one message each. All are stored, or none. Without a body, or with -, stdin is one body."`

	File  string `name:"file" short:"f" placeholder:"FILE" help:"Read the body from a file."`
	Lines bool   `name:"lines" short:"l" help:"Send each line of stdin or the file as a message. Empty lines are skipped."`
	JSON  bool   `name:"json" short:"j" help:"Read bodies as JSON values."`

	RequestID *string `name:"request-id" placeholder:"ID" help:"Makes a repeat safe: for two minutes, the same command with the same id does not store the messages again."`

	messageFlags
	progressFlag
	clientSettings
}

// Run sends and prints the sequence numbers; with --lines the table is a summary.
func (s *sendCommand) Run(ctx context.Context, to terminal.Streams) error {
	template, err := s.template(time.Now())
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	input := to.Stdin
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
		if to.CanAsk && input == to.Stdin && !s.hasBodies() {
			o.note("reading from the terminal; end with Ctrl-D")
		}
		switch {
		case s.Lines:
			return s.sendLines(ctx, o, target, template, input)
		case s.hasBodies():
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

// hasBodies reports whether the bodies are on the command line, where a single "-" stands for stdin.
func (s *sendCommand) hasBodies() bool {
	return s.File == "" && len(s.Text) > 0 && !(len(s.Text) == 1 && s.Text[0] == "-")
}

func (s *sendCommand) check() error {
	switch {
	case s.File != "" && len(s.Text) > 0:
		return cli.Misuse("--file and bodies on the command line exclude each other")
	case s.Lines && s.hasBodies():
		return cli.Misuse("--lines reads stdin or --file, not the command line")
	case s.MessageID != "" && (s.Lines || len(s.Text) > 1):
		return cli.Misuse("--message-id is for a single message")
	case s.RequestID != nil && s.Lines:
		return cli.Misuse("--request-id is for a single call, and --lines makes several")
	case s.RequestID != nil && *s.RequestID == "": // a variable of a shell that is not set
		return cli.Misuse("--request-id is empty, must have 1 to 128 characters; without it a repeat is not safe")
	}
	return nil
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
func (s *sendCommand) sendAll(
	ctx context.Context, o *operator, target string, template *sidebusv1.Message, bodies [][]byte,
) error {
	request := &sidebusv1.SendRequest{Target: target, RequestId: s.RequestID}
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
	if answer.GetRepeated() {
		o.note("--request-id was used before: this is the first answer, and nothing was stored again")
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
		number := strconv.FormatInt(result.GetSequenceNumber(), 10)
		rows = append(rows, []string{number, client.OneLine(result.GetMessageId()), note})
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
