package verbs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

// clientSettings are the flags that all operator verbs have.
type clientSettings struct {
	connectionSettings

	Output string `name:"output" short:"o" enum:"table,json" default:"table" help:"table or json. json is the form of the API: one document, or one message per line."`
}

// connectionSettings are those of them that say how to reach the sidecar.
type connectionSettings struct {
	tlsSettings

	GRPCAddr   string        `name:"grpc-addr" env:"SIDEBUS_GRPC_ADDR" default:"127.0.0.1:7421" help:"Address of the sidecar's gRPC API: host:port or unix:///path."`
	Config     string        `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"YAML file with settings. The keys are the names of the flags of serve."`
	SASKeyFile string        `name:"sas-key-file" env:"SIDEBUS_SAS_KEY_FILE" placeholder:"FILE" help:"File with NAME=KEY for a sidecar with --sas-keys-file. $$${sasKeyVariable} can hold NAME=KEY instead."`
	TokenFile  string        `name:"token-file" env:"SIDEBUS_TOKEN_FILE" placeholder:"FILE" help:"File with the token of an identity in the --policy-file of the sidecar."`
	Timeout    time.Duration `name:"timeout" default:"30s" placeholder:"TIME" help:"Most time for one answer of the sidecar, in addition to --wait."`
}

// operator runs one operator verb: it talks to the sidecar and to the user at the terminal.
type operator struct {
	terminal.Streams
	*client.Client

	out    *bufio.Writer // stdout
	asJSON bool
}

// operate lets work run with a connection to the sidecar.
func (c *clientSettings) operate(
	ctx context.Context, to terminal.Streams, work func(context.Context, *operator) error,
) error {
	return c.connect(ctx, to, c.Output == "json", work)
}

// connect connects to the sidecar and lets work run until it is done or a signal comes. The first signal ends the
// context, so that work can say what was done; a second one ends the process.
func (c *connectionSettings) connect(
	ctx context.Context, to terminal.Streams, asJSON bool, work func(context.Context, *operator) error,
) error {
	if err := settings.CheckAddress("grpc-addr", c.GRPCAddr); err != nil {
		return cli.Misuse("%w", err)
	}
	if c.Timeout <= 0 {
		return cli.Misuse("--timeout is %s, must be more than 0s", duration.Text(c.Timeout))
	}
	token, err := clientToken(c.SASKeyFile, c.TokenFile)
	if err != nil {
		return err
	}
	over, err := c.config(c.GRPCAddr)
	if err != nil {
		return err
	}
	conn, err := client.New(dialTarget(c.GRPCAddr), c.GRPCAddr, c.Timeout, token, over)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, stop := cli.Interruptible(ctx)
	defer stop()
	o := &operator{Streams: to, Client: conn, out: bufio.NewWriter(to.Stdout), asJSON: asJSON}
	return errors.Join(work(ctx, o), o.flush())
}

func dialTarget(addr string) string {
	if len(addr) > len("unix://") && addr[:len("unix://")] == "unix://" {
		return addr
	}
	return "passthrough:///" + dialable(addr)
}

// document writes a message as one line of JSON.
func (o *operator) document(m proto.Message) error { return o.line(client.JSON(m)) }

func (o *operator) line(text []byte) error {
	_, err := o.out.Write(append(text, '\n'))
	return err
}

// say writes a line of a table's prose.
func (o *operator) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.out, format+"\n", args...)
	return err
}

// answer writes the answer of the sidecar as JSON, or else a line that says what was done.
func (o *operator) answer(answer proto.Message, format string, args ...any) error {
	if o.asJSON {
		return o.document(answer)
	}
	return o.say(format, args...)
}

// table writes aligned columns, the header in bold where that can be seen.
func (o *operator) table(header []string, rows [][]string) error {
	if header == nil || !o.HasColours {
		return client.WriteTable(o.out, header, rows)
	}
	var text bytes.Buffer
	if err := client.WriteTable(&text, header, rows); err != nil {
		return err
	}
	first, rest, _ := strings.Cut(text.String(), "\n")
	_, err := o.out.WriteString(o.Paint(terminal.Bold, first) + "\n" + rest)
	return err
}

// note prints a note beside the answer.
func (o *operator) note(format string, args ...any) {
	_ = o.flush() // a failure shows again at the end
	fmt.Fprintf(o.Stderr, "sidebus: "+format+"\n", args...)
}

func (o *operator) flush() error {
	if err := o.out.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// done is whether work may go on, and if not why.
func done(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
