package main

import (
	"context"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
)

type entityExportCommand struct {
	Prefix string `arg:"" optional:"" help:"Only queues and topics whose names begin so; with queues/ or topics/ before it, only those. A topic comes with its subscriptions."`

	Output string `name:"output" short:"o" enum:"yaml,json" default:"yaml" help:"yaml or json."`

	connectionSettings
}

// Run writes entities in the form that apply reads.
func (e *entityExportCommand) Run(ctx context.Context, to terminal) error {
	return e.connect(ctx, to, e.Output == "json", func(ctx context.Context, o *operator) error {
		reading := o.progress("read", "answer")
		set, err := entities.Export(ctx, o.api(), e.Prefix, func(n int) { reading.tell(int64(n)) })
		reading.end()
		if err != nil {
			return err
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
