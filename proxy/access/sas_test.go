package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/sas"
)

// A refusal says what is missing.
func TestAUTH_1_RefusalNamesTheNextStep(t *testing.T) {
	t.Parallel()
	all := access.Send | access.Listen | access.Manage
	keys := access.Keys{
		"sender": {Primary: "p", Claims: access.Send},
		"orders": {Primary: "p", Claims: all, Entity: "orders"},
	}
	authorizer := access.SAS(func() access.Keys { return keys })
	for _, c := range []struct {
		rule  string
		right access.Right
		want  string
	}{
		{"sender", access.Right{Claims: access.Listen, Path: "orders"}, `on "orders"; use a rule with the claim Listen`},
		{"sender", access.Right{Claims: access.Send | access.Listen, Path: "orders"}, "the claim Listen"},
		{"sender", access.Right{Claims: all, Path: "orders"}, "the claim Listen and Manage"},
		{"orders", access.Right{Claims: access.Send, Path: "other"}, `on "other", it is for another entity; use a rule for this one`},
		{"orders", access.Right{Claims: access.Manage}, "is for one entity; use a rule without entity"},
	} {
		caller, err := authorizer.Authenticate(access.Proof{Credentials: []string{sas.Sign(c.rule, "p", time.Now().Add(time.Hour))}})
		if err != nil {
			t.Fatal(err)
		}
		if err := caller.Permit(c.right); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.rule, err, c.want)
		}
	}
}
