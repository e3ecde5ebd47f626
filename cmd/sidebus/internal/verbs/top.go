package verbs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

type topCommand struct {
	Entity []string `arg:"" optional:"" help:"Queues and subscriptions, such as orders or topics/news/subscriptions/eu. Default: all."`

	Every time.Duration `name:"every" short:"e" default:"2s" placeholder:"TIME" help:"Time between two counts, at least 100ms."`
	Count int           `name:"count" short:"n" default:"0" placeholder:"N" help:"Exit after this many counts. 0: run until q or Ctrl-C."`

	clientSettings
}

// Run shows the counts, the fullest entities first, until q, Ctrl-C or the last count.
func (t *topCommand) Run(ctx context.Context, to terminal.Streams) error {
	switch {
	case t.Every < leastPause:
		return cli.Misuse("--every is %s, must be at least %s", duration.Text(t.Every), duration.Text(leastPause))
	case t.Count < 0:
		return cli.Misuse("--count is %d, must be 0 (no end) or more", t.Count)
	case t.Count == 0 && !to.IsScreen && t.Output != "json":
		return cli.Misuse("stdout is not a terminal; pass --count N")
	}
	return t.operate(ctx, to, func(ctx context.Context, o *operator) error {
		keys, restore := o.keys()
		defer restore()
		return (&topping{flags: t, o: o}).run(ctx, keys)
	})
}

// keys returns what is typed, key by key, if stdin and stdout are terminals.
func (o *operator) keys() (keys <-chan byte, restore func()) {
	file, isFile := o.Stdin.(*os.File)
	if !isFile || !o.CanAsk || !o.IsScreen {
		return nil, func() {}
	}
	state, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, func() {}
	}
	typed := make(chan byte)
	go func() { // ends with the process
		key := make([]byte, 1)
		for {
			if n, err := file.Read(key); err != nil || n == 0 {
				return
			}
			typed <- key[0]
		}
	}()
	return typed, func() { _ = term.Restore(int(file.Fd()), state) }
}

// topping is one top under way.
type topping struct {
	flags  *topCommand
	o      *operator
	before map[string]int64 // active messages of the last count
	at     time.Time        // of the last count
}

func (t *topping) run(ctx context.Context, keys <-chan byte) error {
	tick := time.NewTicker(t.flags.Every)
	defer tick.Stop()
	for n := 1; ; n++ {
		if err := t.show(ctx, n == 1, keys != nil); err != nil {
			return err
		}
		if n == t.flags.Count {
			return nil
		}
		if stop, err := t.wait(ctx, tick.C, keys); stop || err != nil {
			return err
		}
	}
}

// wait waits for the next count and reports whether there is none.
func (t *topping) wait(ctx context.Context, tick <-chan time.Time, keys <-chan byte) (stop bool, err error) {
	const ctrlC, ctrlD = 3, 4
	for {
		select {
		case <-tick:
			return false, nil
		case <-ctx.Done():
			return true, context.Cause(ctx)
		case key := <-keys:
			switch key {
			case 'q', 'Q', ctrlD:
				return true, nil
			case ctrlC:
				return true, cli.Interrupted{By: os.Interrupt}
			}
		}
	}
}

// show counts and shows the result. Only the first failure ends it, so that it outlives a restart of the sidecar.
func (t *topping) show(ctx context.Context, isFirst, isRaw bool) error {
	all, err := (&statsCommand{Entity: t.flags.Entity}).count(ctx, t.o)
	switch ended := done(ctx); {
	case ended != nil:
		return ended
	case err != nil && isFirst:
		return err
	case t.o.asJSON && err != nil:
		t.o.note("%v", err)
		return nil
	case t.o.asJSON:
		return cmp.Or(t.o.line(all.document()), t.o.flush())
	}
	now := time.Now()
	var text bytes.Buffer
	fmt.Fprintf(&text, "sidebus top, %s, every %s", now.Format(time.TimeOnly), duration.Text(t.flags.Every))
	if isRaw {
		text.WriteString(", q to quit")
	}
	text.WriteByte('\n')
	if err != nil {
		fmt.Fprintf(&text, "%v\n", err)
	} else if err := t.table(&text, all, now); err != nil {
		return err
	}
	return t.write(text.String(), isFirst, isRaw)
}

// table writes the counts, the fullest first.
func (t *topping) table(to *bytes.Buffer, all *counted, now time.Time) error {
	sources := slices.Concat(all.queues, all.subscriptions)
	slices.SortStableFunc(sources, func(a, b entityCounts[*sidebusv1.QueueRuntime]) int {
		return cmp.Or(cmp.Compare(b.counts.GetActiveMessageCount(), a.counts.GetActiveMessageCount()),
			cmp.Compare(b.counts.GetDeadLetterMessageCount(), a.counts.GetDeadLetterMessageCount()))
	})
	columns, lines := t.o.Size()
	header := append([]string{"ENTITY", "CHANGE/S"}, narrow...)
	before, active := t.before, map[string]int64{}
	var rows [][]string
	for _, s := range sources {
		n := s.counts.GetActiveMessageCount()
		active[s.name] = n
		change := client.Absent
		if was, known := before[s.name]; known {
			change = fmt.Sprintf("%+.0f", float64(n-was)/max(now.Sub(t.at).Seconds(), 1e-3))
		}
		rows = append(rows, append([]string{client.OneLine(s.name), change}, narrowRow(s.counts, now)...))
	}
	t.before, t.at = active, now
	const used = 3 // the lines of title, header and what is left out
	if lines > used && len(rows) > lines-used {
		defer fmt.Fprintf(to, "... and %d more\n", len(rows)-(lines-used))
		rows = rows[:lines-used]
	}
	fitNames(header, rows, columns)
	return client.WriteTable(to, header, rows)
}

// write puts a text in the place of the one before. In raw mode the terminal does not return to the first column on a
// line feed.
func (t *topping) write(text string, isFirst, isRaw bool) error {
	end := "\n"
	if isRaw {
		end = "\r\n"
	}
	if t.o.IsScreen {
		if isFirst {
			_, _ = t.o.out.WriteString("\x1b[2J") // a failure shows again at the flush
		}
		text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K"+end) + "\x1b[J"
	}
	_, _ = t.o.out.WriteString(text)
	return t.o.flush()
}
