package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// refuseLevel refuses a Redis on which a level of durability cannot be (DUR-3). Replicas come and go, so not every
// caller needs them to be there: else their absence is a warning, and answers are DURABILITY_NOT_MET.
func (s *Store) refuseLevel(level semantics.Durability, facts, settings map[string]string, needsReplicas bool) error {
	unfit := func(format string, args ...any) error {
		return semantics.Errorf(semantics.PreconditionFailed, format, args...)
	}
	switch level {
	case semantics.DurabilityDisk:
		switch {
		case facts["aof_enabled"] != "1":
			return unfit("durability disk needs an append-only file; set appendonly yes in Redis, or use durability memory")
		case settings[appendFsync] == "no":
			return unfit(
				"durability disk is not possible with appendfsync no, which never asks the disk; set always or everysec in " +
					"Redis",
			)
		case knowsWaitAOF(facts):
			return nil
		case len(settings) == 0:
			return unfit(
				"durability disk cannot be checked, because Redis %s permits no CONFIG GET; permit it, or use Redis 7.2 or later",
				facts["redis_version"],
			)
		}
		if err := waitsForDisk(settings); err != nil {
			return unfit(
				"durability disk is not possible with Redis %s: %s; change that, or use Redis 7.2 or later",
				facts["redis_version"], err,
			)
		}
	case semantics.DurabilityReplica:
		wanted := s.options.Durability.replicas()
		if online := replicasOf(facts); online < wanted && needsReplicas {
			return unfit(
				"durability replica needs %d connected replicas of each primary, and one has %d; "+
					"add replicas, or lower --durability-replicas, or use durability disk", wanted, online,
			)
		}
	case semantics.DurabilityMemory:
	}
	return nil
}

// refuseOwnLevel refuses options of an entity with a level of durability that one of the servers cannot have (DUR-3).
func (s *Store) refuseOwnLevel(ctx context.Context, options semantics.Options) error {
	level := options.Durability.Level(semantics.DurabilityMemory)
	if level == semantics.DurabilityMemory {
		return nil
	}
	primaries, err := s.servers.primaries(ctx)
	if err != nil {
		return storeError(err, false)
	}
	for _, server := range primaries {
		facts, settings, err := factsOf(ctx, server)
		if err == nil {
			err = s.refuseLevel(level, facts, settings, true)
		}
		if semantics.CodeOf(err) == semantics.PreconditionFailed {
			err = semantics.AsError(err).With(semantics.DetailField, "durability")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// durabilityWarnings returns why calls may be answered with DURABILITY_NOT_MET: by the level of the sidecar, and by
// those that entities are known to ask for.
func (s *Store) durabilityWarnings(facts, settings map[string]string) []string {
	levels := s.levelsAsked()
	if own := s.options.Durability.Level; !slices.Contains(levels, own) {
		levels = append(levels, own)
	}
	var found []string
	for _, level := range levels {
		if warning := s.durabilityWarning(level, facts, settings); warning != "" {
			found = append(found, warning)
		}
	}
	return found
}

func (s *Store) durabilityWarning(level semantics.Durability, facts, settings map[string]string) string {
	const outcome = ": sends and settlements are stored, but answered with DURABILITY_NOT_MET"
	d := s.options.Durability
	if err := s.refuseLevel(level, facts, settings, false); err != nil { // only of an entity: else the check has failed
		return semantics.AsError(err).Message + outcome
	}
	if level == semantics.DurabilityDisk && settings[appendFsync] == "everysec" && d.timeout() < patientEnough {
		return fmt.Sprintf(
			"appendfsync is everysec: with durability disk an answer waits for the next sync, a second or two, "+
				"and --durability-timeout is %s; set appendfsync always, or %s", d.timeout(), patientEnough,
		)
	}
	if online := replicasOf(facts); level == semantics.DurabilityReplica && online < d.replicas() {
		return fmt.Sprintf("durability replica needs %d replicas, and a primary has %d%s", d.replicas(), online, outcome)
	}
	return ""
}

// patientEnough is a wait that outlasts the syncs of appendfsync everysec.
const patientEnough = 3 * time.Second

// replicasOf returns how many replicas are connected and have caught up once.
func replicasOf(facts map[string]string) int {
	online := 0
	for i := 0; facts["slave"+strconv.Itoa(i)] != ""; i++ {
		if strings.Contains(facts["slave"+strconv.Itoa(i)], "state=online") {
			online++
		}
	}
	return online
}

// knowsWaitAOF reports whether a server has the command WAITAOF, which came with 7.2.
func knowsWaitAOF(facts map[string]string) bool {
	major, rest, _ := strings.Cut(facts["redis_version"], ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (a > 7 || a == 7 && b >= 2)
}

// settingsOf returns what CONFIG GET answered: names and values in turn.
func settingsOf(values []string) map[string]string {
	settings := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		settings[values[i]] = values[i+1]
	}
	return settings
}
