// Package declared creates the entities that the file of a sidecar declares, before the sidecar is ready.
package declared

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/inprocess"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/store"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// differsLine is the message of the log line about one option that is not as the file has it.
const differsLine = "an entity differs from the file and was not changed"

// Entities creates the entities of the file before the sidecar is ready. It is the Checker between readiness and the
// store. The first check that finds the store usable starts the creation; checks fail until it has finished.
type Entities struct {
	semantics.Checker

	set    *entities.Set
	logger *slog.Logger
	broker *broker.Broker // of its own: these calls must not use up the rate of the application

	seen   sync.Once
	usable chan struct{} // closed when a check has found the store usable
	made   chan struct{} // closed when all entities exist

	work sync.WaitGroup
	err  error // why the creation failed; to be read after the work
}

// New checks the entities of the file, which may be nil. It starts nothing.
func New(ctx context.Context, set *entities.Set, hasSessions bool, logger *slog.Logger) (*Entities, error) {
	if set == nil {
		set = &entities.Set{}
	}
	if err := set.Check(ctx, sessionsOption(hasSessions)...); err != nil {
		return nil, err
	}
	for _, note := range set.Notes {
		logger.Warn("the file of entities", "note", note)
	}
	return &Entities{set: set, logger: logger, usable: make(chan struct{}), made: make(chan struct{})}, nil
}

func sessionsOption(hasSessions bool) []broker.Option {
	if hasSessions {
		return nil
	}
	return []broker.Option{broker.WithoutSessions()}
}

// Begin makes the store's checks fail until the entities exist, and creates them in the background. The context that it
// returns ends when the creation fails.
func (d *Entities) Begin(
	ctx context.Context, store *store.Opened, hasSessions bool,
) (context.Context, context.CancelCauseFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	if len(d.set.Entities) == 0 {
		return ctx, fail
	}
	d.Checker, store.Checker = store.Checker, d
	d.broker = broker.New(store, append(sessionsOption(hasSessions), broker.WithRules(filter.Compile))...)
	d.work.Go(func() {
		select {
		case <-d.usable:
		case <-ctx.Done():
			return
		}
		if err := d.make(ctx); err != nil && ctx.Err() == nil {
			d.err = err
			fail(err)
		}
	})
	return ctx, fail
}

// End waits for the work and reports whether it has failed.
func (d *Entities) End() error {
	d.work.Wait()
	if d.broker != nil {
		d.broker.Close()
	}
	return d.err
}

// Check is that of the store, and fails until the entities exist.
func (d *Entities) Check(ctx context.Context) (semantics.Health, error) {
	health, err := d.Checker.Check(ctx)
	if err != nil {
		return health, err
	}
	d.seen.Do(func() { close(d.usable) })
	select {
	case <-d.made:
		return health, nil
	case <-ctx.Done():
		return health, semantics.Errorf(semantics.StoreUnavailable, "the entities of the file do not exist yet")
	}
}

// make creates the entities, however long the store is unavailable.
func (d *Entities) make(ctx context.Context) error {
	api := sidebusv1.NewAdminClient(client.Patient(inprocess.Connect(d.broker), isPassing))
	created := 0
	err := d.set.Make(ctx, api, func(made entities.Made) {
		if made.IsNew {
			created++
		}
		for _, difference := range made.Differences {
			d.logger.Warn(differsLine, "entity", made.Entity.Resource, "option", difference.Option,
				"current", difference.Present, "requested", difference.Asked)
		}
	})
	var failed *entities.Failed
	switch {
	case errors.As(err, &failed):
		return failed.Located()
	case err != nil:
		return err
	}
	d.logger.Info("the entities of the file exist", "entities", len(d.set.Entities), "created", created)
	close(d.made)
	return nil
}

// isPassing reports whether a failure can pass without an operator.
func isPassing(f *client.Failure) bool {
	switch f.Reason {
	case semantics.StoreUnavailable, semantics.ServiceTimeout, semantics.Throttled, semantics.ConflictInProgress:
		return true
	default:
		return false
	}
}

// Show adds the entities to the settings in force.
func (d *Entities) Show(into map[string]string) map[string]string {
	if queues, topics, subscriptions := d.set.Count(); len(d.set.Entities) > 0 {
		into[entities.Key] = fmt.Sprintf(
			"%s, %s, %s", client.Count(queues, "queue"), client.Count(topics, "topic"),
			client.Count(subscriptions, "subscription"),
		)
	}
	return into
}
