// Package doctor examines the store beside the sidecars.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/store"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/semantics"
)

// Command is the verb "doctor".
type Command struct {
	Entity []string `arg:"" optional:"" help:"Queues and topics whose structures are checked, whatever they hold: Redis serves no other client while it reads one. Default: all that are not large."`

	settings.StoreSettings

	ACL bool `name:"acl" help:"Print the command that creates a Redis user with the permissions that Sidebus needs, for the namespace and the version of the server, and examine nothing."`

	Config string `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"YAML file with settings. The keys are the names of the flags of serve."`
	Output string `name:"output" short:"o" enum:"table,json" default:"table" help:"table or json. json is one finding per line."`
	Quiet  bool   `name:"quiet" short:"q" help:"Show warnings and problems only."`
}

// Run examines the store and prints what was found. It fails if there is a problem.
func (d *Command) Run(ctx context.Context, to terminal.Streams) error {
	if err := d.Check(); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(ctx)
	defer stop()
	opened, err := store.OpenExaminer(&d.StoreSettings, store.Observer{}, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer opened.Close()
	if d.ACL {
		return printACL(ctx, to, opened)
	}
	r := &report{to: to, asJSON: d.Output == "json", isQuiet: d.Quiet}
	r.title("%s, namespace %s", opened.What, d.Namespace)
	what := semantics.Examination{Progress: r.progress}
	for _, name := range d.Entity {
		path := client.Name(client.Resource(name))
		if topic, _, isSubscription := semantics.SplitSubscription(path); isSubscription {
			path = topic // a topic and its subscriptions belong together
		}
		what.Paths = append(what.Paths, path)
	}
	err = opened.Examine(ctx, what, r.add)
	r.progressEnds()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	default:
		return r.end()
	}
}

// printACL prints the command that creates a Redis user for Sidebus.
func printACL(ctx context.Context, to terminal.Streams, opened *store.Examiner) error {
	rule, err := opened.ACL(ctx)
	if err == nil {
		_, err = fmt.Fprintln(to.Stdout, rule)
	}
	return err
}

// report prints findings as they come.
type report struct {
	to              terminal.Streams
	asJSON, isQuiet bool
	isProgressShown bool
	last            string // where the last finding was
	counts          map[semantics.Severity]int
	err             error
}

var severityStyles = map[semantics.Severity]terminal.Style{
	semantics.Fine: terminal.Green, semantics.Warning: terminal.Yellow, semantics.Problem: terminal.Red,
}

func (r *report) title(format string, args ...any) {
	if !r.asJSON {
		r.print(r.to.Paint(terminal.Bold, client.OneLine(fmt.Sprintf(format, args...))))
	}
}

func (r *report) add(f semantics.Finding) {
	r.progressEnds()
	if r.counts == nil {
		r.counts = map[semantics.Severity]int{}
	}
	r.counts[f.Severity]++
	if r.isQuiet && f.Severity == semantics.Fine {
		return
	}
	if r.asJSON {
		line, err := json.Marshal(f)
		if err != nil {
			panic(err) // texts can always be written
		}
		r.print(string(line))
		return
	}
	where := ""
	if f.Where != "" && f.Where != r.last { // once for each server
		where = f.Where + ": "
	}
	r.last = f.Where
	severity := r.to.Paint(severityStyles[f.Severity], fmt.Sprintf("%-7s", f.Severity))
	r.print(severity + "  " + fmt.Sprintf("%-11s  ", f.Subject) + client.OneLine(where+f.Text))
	if f.Advice != "" {
		r.print(fmt.Sprintf("%-22s-> %s", "", f.Advice))
	}
}

// progress shows which entity is read, on a terminal.
func (r *report) progress(path string, i, of int) {
	if r.to.IsWatched {
		r.isProgressShown = true
		fmt.Fprintf(r.to.Stderr, "\r\x1b[K%d of %d: %s", i, of, client.OneLine(path))
	}
}

func (r *report) progressEnds() {
	if r.isProgressShown {
		r.isProgressShown = false
		fmt.Fprint(r.to.Stderr, "\r\x1b[K")
	}
}

func (r *report) print(line string) {
	if _, err := fmt.Fprintln(r.to.Stdout, line); err != nil && r.err == nil {
		r.err = err
	}
}

// end returns an error when something is wrong.
func (r *report) end() error {
	if r.err != nil {
		return r.err
	}
	problems, warnings := r.counts[semantics.Problem], r.counts[semantics.Warning]
	if problems > 0 {
		return fmt.Errorf("problems: %d, warnings: %d", problems, warnings)
	}
	if !r.asJSON {
		r.print(fmt.Sprintf("problems: 0, warnings: %d", warnings))
	}
	return r.err
}
