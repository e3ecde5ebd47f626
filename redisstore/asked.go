package redisstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// needsFence is the status of a script that has done nothing, because its caller does not wait for the durability that
// the entity asks for (DUR-1): see lua/lib/entity/lacks_fence.lua.
const needsFence = "NEEDS_FENCE"

// learnAsked notes what the entity of this key asks for: the value of its option durability; of the entities of a
// transaction, in order, with commas between them. If that is wrong later, scripts refuse the call.
func (s *Store) learnAsked(key, level string) {
	if level == semantics.AsSidecar.String() {
		s.asked.forget(key)
		return
	}
	s.asked.put(key, level)
	s.anyAsks.Store(true)
}

// withAsked returns arguments of a script of which the first one, the instant, also has what its caller waits for.
func withAsked(args []any, how int, asked string) []any {
	if asked == "" && how == behindArrival {
		asked = semantics.AsSidecar.String()
	}
	if asked == "" || how == behindNothing {
		return args
	}
	args = slices.Clone(args)
	args[0] = fmt.Sprintf("%v;%s", args[0], asked)
	return args
}

// levelsOf returns the levels to wait for, each once.
func levelsOf(asked string, sidecar semantics.Durability) []semantics.Durability {
	var levels []semantics.Durability
	for word := range strings.SplitSeq(asked, ",") {
		level := semantics.ParseEntityDurability(word).Level(sidecar)
		if level != semantics.DurabilityMemory && !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	return levels
}

// levelsAsked returns the levels that entities are known to ask for.
func (s *Store) levelsAsked() []semantics.Durability {
	var levels []semantics.Durability
	for _, known := range s.asked.values() {
		for _, level := range levelsOf(known, s.options.Durability.Level) {
			if !slices.Contains(levels, level) {
				levels = append(levels, level)
			}
		}
	}
	return levels
}

// plainKind returns the kind of an entity without regard to whether it asks for a durability: see
// lua/lib/entity/mark_fenced.lua.
func plainKind(kind string) string { return strings.TrimPrefix(kind, "fenced_") }
