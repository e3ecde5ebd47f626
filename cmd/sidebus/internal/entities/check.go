package entities

import (
	"context"
	"errors"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/inprocess"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// Check creates the entities in memory, so that whatever a sidecar would refuse is refused before one is asked, with
// the place in the file. What they forward to and what is not among them is taken to be there.
func (s *Set) Check(ctx context.Context, options ...broker.Option) error {
	api := inprocess.Empty(options...)
	for _, e := range s.Entities {
		for _, d := range e.destinations() {
			if s.find(destinationKey(d.name)) != nil {
				continue
			}
			if _, err := api.EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: "queues/" + d.name}); err != nil {
				return e.located(err)
			}
		}
	}
	err := s.Make(ctx, api, func(Made) {})
	var failed *Failed
	if errors.As(err, &failed) {
		return failed.Located()
	}
	if err == nil {
		s.noteWarnings()
	}
	return err
}

// noteWarnings notes what is valid in a rule and hardly meant so (SQL-12).
func (s *Set) noteWarnings() {
	for _, e := range s.Entities {
		for i, r := range e.Rules() {
			rule, err := wire.RuleOf(r)
			if err != nil {
				continue
			}
			compiled, err := filter.Compile(rule)
			if err != nil {
				continue
			}
			for _, warning := range compiled.Warnings() {
				s.Notes = append(s.Notes, e.places[rulePlace(i)].Errorf("warning: %s", warning).Error())
			}
		}
	}
}
