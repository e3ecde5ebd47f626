package redisstore

import (
	"context"
	"slices"
	"strings"
)

// aclCommands are the commands that Sidebus sends, as ACL SETUSER takes them. Those of doctor are multi and exec;
// config|get is for what cannot be read otherwise, and may be left out where no level of durability needs it.
var aclCommands = []string{
	"-@all", "+@hash", "+@sortedset", "+@stream", "+exists", "+get", "+set", "+pexpire", "+del", "+unlink", "+rename",
	"+ping", "+info", "+config|get", "+client|setname", "+time", "+script|load", "+eval", "+evalsha", "+eval_ro",
	"+evalsha_ro", "+ssubscribe", "+sunsubscribe", "+spublish", "+multi", "+exec", "+wait",
}

// ACL returns the command that creates a Redis user with exactly the permissions that Sidebus needs on the servers of
// the store, for its namespace. Servers refuse commands that they do not know, so it depends on their versions.
func (s *Store) ACL(ctx context.Context) (string, error) {
	primaries, err := s.servers.primaries(ctx)
	if err != nil {
		return "", storeError(err, false)
	}
	hasWaitAOF, isCluster := true, false
	for _, server := range primaries {
		text, err := server.Do(ctx, "INFO", "everything").Text()
		if err != nil {
			return "", storeError(err, false)
		}
		facts := parseInfo(text)
		hasWaitAOF = hasWaitAOF && knowsWaitAOF(facts)
		isCluster = isCluster || facts["cluster_enabled"] == "1"
	}
	rule := []string{"ACL", "SETUSER", "sidebus", "reset", "on", ">PASSWORD"}
	for _, tag := range []string{s.namespace, s.namespace + "/*", s.namespace + "#*"} { // of all keys; see keys.go
		rule = append(rule, "~sb:{"+tag+"}:*", "&sb:{"+tag+"}:*")
	}
	rule = slices.Concat(rule, aclCommands)
	if hasWaitAOF {
		rule = append(rule, "+waitaof")
	}
	if isCluster {
		rule = append(rule, "+cluster|slots", "+cluster|info", "+asking")
	}
	return strings.Join(rule, " "), nil
}
