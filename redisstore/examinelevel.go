package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// examineLevels finds levels of durability that a server cannot have (DUR-3): that of --durability, and those that
// entities of the namespace ask for.
func (s *Store) examineLevels(ctx context.Context, report func(semantics.Finding)) error {
	asking, err := s.entitiesByLevel(ctx)
	if err != nil {
		return err
	}
	primaries, err := s.servers.primaries(ctx)
	if err != nil {
		return err
	}
	for _, level := range []semantics.Durability{semantics.DurabilityDisk, semantics.DurabilityReplica} {
		who := s.whoAsks(level, asking[level])
		if who == "" {
			continue
		}
		met := true
		for _, server := range primaries {
			facts, settings, err := factsOf(ctx, server)
			if err != nil {
				return err
			}
			found := s.levelFinding(level, facts, settings)
			if found.Text != "" {
				found.Where, met = s.nameOf(server), false
				found.Text += ", and " + who + " for it: calls are answered with DURABILITY_NOT_MET"
				report(found)
			}
		}
		if met {
			report(semantics.Finding{
				Severity: semantics.Fine, Subject: "durability", Text: fmt.Sprintf("%s can be met, %s for it", level, who),
			})
		}
	}
	return nil
}

// levelFinding returns why a server cannot have a level, or has it only with patience; without a text if it can.
func (s *Store) levelFinding(level semantics.Durability, facts, settings map[string]string) semantics.Finding {
	found := semantics.Finding{Subject: "durability"}
	if err := s.refuseLevel(level, facts, settings, true); err != nil {
		found.Severity = semantics.Problem
		found.Text, found.Advice, _ = strings.Cut(semantics.AsError(err).Message, "; ")
	} else if warning := s.durabilityWarning(level, facts, settings); warning != "" {
		found.Severity = semantics.Warning
		found.Text, found.Advice, _ = strings.Cut(warning, "; ")
	}
	return found
}

// mostNamed is how many entities that ask for a level are named.
const mostNamed = 3

// whoAsks says who asks for a level, "" if no one does.
func (s *Store) whoAsks(level semantics.Durability, paths []string) string {
	var who []string
	if s.options.Durability.Level == level {
		who = append(who, "--durability")
	}
	who = append(who, paths[:min(len(paths), mostNamed)]...)
	if more := len(paths) - mostNamed; more > 0 {
		who = append(who, fmt.Sprintf("%d more", more))
	}
	switch len(who) {
	case 0:
		return ""
	case 1:
		return who[0] + " asks"
	default:
		return strings.Join(who, ", ") + " ask"
	}
}

// entitiesByLevel returns the paths of the entities that ask for a level of their own.
func (s *Store) entitiesByLevel(ctx context.Context) (map[semantics.Durability][]string, error) {
	found := map[semantics.Durability][]string{}
	var list func(kind semantics.Kind, topic string) error
	list = func(kind semantics.Kind, topic string) error {
		for after, more := "", true; more; {
			page, left, err := s.ListEntities(ctx, kind, topic, after, 500)
			if err != nil {
				return err
			}
			for _, entity := range page {
				if entity.Options.Durability != semantics.AsSidecar {
					level := entity.Options.Durability.Level(semantics.DurabilityMemory)
					found[level] = append(found[level], entity.Name)
				}
				if entity.Kind == semantics.TopicKind {
					err := list(semantics.SubscriptionKind, entity.Name)
					if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
						return err
					}
				}
				after = semantics.Fold(entity.OwnName())
			}
			more = left && len(page) > 0
		}
		return nil
	}
	for _, kind := range []semantics.Kind{semantics.QueueKind, semantics.TopicKind} {
		if err := list(kind, ""); err != nil {
			return nil, err
		}
	}
	for _, paths := range found {
		slices.Sort(paths)
	}
	return found, nil
}
