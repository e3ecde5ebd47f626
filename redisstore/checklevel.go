package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// refuseLevel refuses a Redis on which the level of durability cannot be (DUR-3). Replicas come and go, so only the
// start needs them: later their absence is a warning, and answers are DURABILITY_NOT_MET.
func (s *Store) refuseLevel(facts, settings map[string]string) error {
	unfit := func(format string, args ...any) error {
		return semantics.Errorf(semantics.PreconditionFailed, format, args...)
	}
	d := s.options.Durability
	switch d.Level {
	case semantics.DurabilityDisk:
		switch {
		case facts["aof_enabled"] != "1":
			return unfit("durability disk needs an append-only file; set appendonly yes in Redis, or use --durability memory")
		case settings[appendFsync] == "no":
			return unfit(
				"durability disk cannot be with appendfsync no, which never asks the disk; set always or everysec in Redis",
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
				"durability disk cannot be with Redis %s: %s; change that, or use Redis 7.2 or later", facts["redis_version"], err,
			)
		}
	case semantics.DurabilityReplica:
		if online := replicasOf(facts); online < d.replicas() && !s.isFit.Load() {
			return unfit(
				"durability replica needs %d connected replicas of each primary, and one has %d; "+
					"add replicas, or lower --durability-replicas, or use --durability disk", d.replicas(), online,
			)
		}
	case semantics.DurabilityMemory:
	}
	return nil
}

// durabilityWarnings returns why calls may be answered with DURABILITY_NOT_MET.
func (s *Store) durabilityWarnings(facts, settings map[string]string) []string {
	d := s.options.Durability
	if d.Level == semantics.DurabilityDisk && settings[appendFsync] == "everysec" && d.timeout() < patientEnough {
		return []string{fmt.Sprintf(
			"appendfsync is everysec: with durability disk an answer waits for the next sync, a second or two, "+
				"and --durability-timeout is %s; set appendfsync always, or %s", d.timeout(), patientEnough,
		)}
	}
	if online := replicasOf(facts); d.Level == semantics.DurabilityReplica && online < d.replicas() {
		return []string{fmt.Sprintf(
			"durability replica needs %d replicas, and a primary has %d: "+
				"sends and settlements are stored, but answered with DURABILITY_NOT_MET", d.replicas(), online,
		)}
	}
	return nil
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
