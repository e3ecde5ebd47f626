package compat

import (
	"maps"
	"slices"
	"testing"
)

// The table of claims for every guard is claimsOfREST in proxy/access_test.go: a verb that is added here needs a row there.
func TestAUTH_3_TheTableHasEveryVerb(t *testing.T) {
	t.Parallel()
	var reached []verb
	for _, verbs := range []map[string]verb{toMessages, toHead, toLock} {
		reached = slices.AppendSeq(reached, maps.Values(verbs))
	}
	slices.Sort(reached)
	if want := []verb{send, receive, receiveAndDelete, complete, unlock, renew}; !slices.Equal(reached, want) {
		t.Errorf("the routes reach %v, the table has %v", reached, want)
	}
	for _, verb := range reached {
		if rpcs[verb] == "" || names[verb] == "" {
			t.Errorf("verb %d has no corresponding RPC or no name", verb)
		}
	}
}
