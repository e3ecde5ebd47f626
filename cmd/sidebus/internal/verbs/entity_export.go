package verbs

import (
	"context"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

type entityExportCommand struct {
	Prefix string `arg:"" optional:"" help:"Only queues and topics whose names begin with this text; queues/TEXT or topics/TEXT selects one kind. A topic includes its subscriptions."`

	Output string `name:"output" short:"o" enum:"yaml,json" default:"yaml" help:"yaml or json."`

	progressFlag
	connectionSettings
}

// Run writes entities in the form that apply reads.
func (e *entityExportCommand) Run(ctx context.Context, to terminal.Streams) error {
	return e.connect(ctx, to, e.Output == "json", func(ctx context.Context, o *operator) error {
		reading := o.progress(e.progressFlag, "read", "answer", 0)
		set, err := entities.Export(ctx, o.api(), e.Prefix, func(n, of int) {
			reading.total = int64(of)
			reading.tell(int64(n))
		})
		reading.end()
		if err != nil {
			return err
		}
		if len(set.Entities) == 0 && e.Prefix != "" {
			o.note("no queue or topic has a name that begins with %q", e.Prefix)
		}
		for _, note := range set.Notes {
			o.note("%s", note)
		}
		if o.asJSON {
			return o.line(set.JSON())
		}
		return set.WriteYAML(o.out)
	})
}
