package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
)

// clientSettings are the flags that all operator verbs have.
type clientSettings struct {
	connectionSettings

	Output string `name:"output" short:"o" enum:"table,json" default:"table" help:"table, or json: the API's form, one document or one message a line."`
}

// connectionSettings are those of them that say how to reach the sidecar.
type connectionSettings struct {
	GRPCAddr string        `name:"grpc-addr" env:"SIDEBUS_GRPC_ADDR" default:"127.0.0.1:7421" help:"Address of the sidecar's gRPC API: host:port or unix:///path."`
	Config   string        `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"Settings as YAML; keys are the names of the flags of serve."`
	Timeout  time.Duration `name:"timeout" default:"30s" placeholder:"TIME" help:"How long one answer of the sidecar may take, beyond a wait that was asked for."`
}

// operator carries out one operator verb: it speaks to the sidecar and to who sits at the terminal.
type operator struct {
	terminal
	*client.Client

	out    *bufio.Writer // stdout
	asJSON bool
}

// usageError is a command line that parses and makes no sense.
type usageError struct{ error }

// Unwrap gives what is wrong with it.
func (u usageError) Unwrap() error { return u.error }

func misuse(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// interrupted is why the context of an operator verb ends.
type interrupted struct{ by os.Signal }

// Error names the signal.
func (i interrupted) Error() string { return "ended by a signal: " + i.by.String() }

// operate lets work run with a connection to the sidecar.
func (c *clientSettings) operate(ctx context.Context, to terminal, work func(context.Context, *operator) error) error {
	return c.connect(ctx, to, c.Output == "json", work)
}

// connect connects to the sidecar and lets work run until it is done or a signal comes. The first signal ends the context,
// so that work can say what was done; a second one ends the process.
func (c *connectionSettings) connect(ctx context.Context, to terminal, asJSON bool, work func(context.Context, *operator) error) error {
	if err := checkAddress("grpc-addr", c.GRPCAddr); err != nil {
		return err
	}
	if c.Timeout <= 0 {
		return misuse("--timeout is %s, must be more than 0s", c.Timeout)
	}
	conn, err := client.New(dialTarget(c.GRPCAddr), c.GRPCAddr, c.Timeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, stop := interruptible(ctx)
	defer stop()
	o := &operator{terminal: to, Client: conn, out: bufio.NewWriter(to.stdout), asJSON: asJSON}
	return errors.Join(work(ctx, o), o.flush())
}

func dialTarget(addr string) string {
	if len(addr) > len("unix://") && addr[:len("unix://")] == "unix://" {
		return addr
	}
	return "passthrough:///" + dialable(addr)
}

// interruptible returns a context that ends at the first SIGINT or SIGTERM, from when on they act as usual.
func interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case by := <-signals:
			signal.Stop(signals)
			cancel(interrupted{by})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-watched
	}
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

// table writes aligned columns.
func (o *operator) table(header []string, rows [][]string) error {
	return client.WriteTable(o.out, header, rows)
}

// note tells something beside the answer.
func (o *operator) note(format string, args ...any) {
	_ = o.flush() // a failure shows again at the end
	fmt.Fprintf(o.stderr, "sidebus: "+format+"\n", args...)
}

func (o *operator) flush() error {
	if err := o.out.Flush(); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// count gives "1 message", "2 messages", "2 entities".
func count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// done is whether work may go on, and if not why.
func done(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
