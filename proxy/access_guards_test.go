package proxy_test

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// guards are the ways in which a caller proves who it is. Each runs a sidecar, whose callers with the name of a rule of
// someKeys have the claims of that rule, however they prove it.
var guards = map[string]func(t *testing.T) *sidecar{
	"signatures":                 guarded,
	"a policy, a token":          func(t *testing.T) *sidecar { t.Helper(); return guardedBy(t, policyOf(nil), bearerOf) },
	"a policy, a signature":      guardedBySignatures,
	"a policy, the user":         guardedByUser,
	"a policy, the certificates": guardedByCertificate,
}

// withEachGuard runs a test for each of them.
func withEachGuard(t *testing.T, test func(t *testing.T, s *sidecar)) {
	t.Helper()
	for name, guard := range guards {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, guard(t))
		})
	}
}

// guarded runs a sidecar with someKeys.
func guarded(t *testing.T) *sidecar {
	t.Helper()
	return guardedBy(t, access.SAS(func() access.Keys { return someKeys }), tokenOf)
}

func guardedBySignatures(t *testing.T) *sidecar {
	t.Helper()
	return guardedBy(t, policyOf(func() access.Keys { return someKeys }), tokenOf)
}

func guardedBy(t *testing.T, authorizer access.Authorizer, tokenOf func(rule string) string) *sidecar {
	t.Helper()
	s := launch(t, memstore.New(), func(c *proxy.Config) { c.Authorizer = authorizer })
	s.tokenOf = tokenOf
	wait(t, "start", s.proxy.Started())
	return s
}

// guardedByUser runs a sidecar at unix sockets. This process has one user, so the policy changes with each caller.
func guardedByUser(t *testing.T) *sidecar {
	t.Helper()
	uid := os.Getuid()
	policy, become := changingPolicy(access.Identity{UIDs: []int{uid}}, access.Identity{UIDs: []int{uid + 1}})
	folder := shortFolder(t)
	s := launch(t, memstore.New(), func(c *proxy.Config) {
		c.Authorizer, c.HTTPAddr, c.GRPCAddr = policy, "unix://"+folder+"/h", "unix://"+folder+"/g"
	})
	s.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", folder+"/h")
	}
	s.conn, s.base, s.tokenOf = dial(t, "unix://"+folder+"/g"), "http://localhost", noToken
	s.as = func(rule string) *sidecar {
		become(rule)
		return s
	}
	wait(t, "start", s.proxy.Started())
	return s
}

func noToken(string) string { return "" }

// changingPolicy returns a policy, and a function that gives to caller what a rule permits. With the rule "" only another
// caller has an identity, which may do everything.
func changingPolicy(caller, another access.Identity) (access.Policies, func(rule string)) {
	var now atomic.Pointer[access.Policy]
	another.Name, another.Grants = "another", grantsOf("Manage")
	become := func(rule string) {
		identities := []access.Identity{another}
		if rule != "" {
			caller.Name, caller.Grants = rule, grantsOf(rule)
			identities = append(identities, caller)
		}
		now.Store(access.NewPolicy(identities, nil, nil))
	}
	become("")
	return now.Load, become
}

// guardedByCertificate runs a sidecar over TLS. Each caller has a certificate with the name of its rule.
func guardedByCertificate(t *testing.T) *sidecar {
	t.Helper()
	ca := newAuthority(t)
	var identities []access.Identity
	for rule := range someKeys {
		identities = append(identities, access.Identity{Name: rule, Certificates: []string{"CN=" + rule}, Grants: grantsOf(rule)})
	}
	policy := access.NewPolicy(identities, nil, nil)
	s := launchTLS(t, ca.files(t, "sidecar"), access.Policies(func() *access.Policy { return policy }))
	callers := map[string]*sidecar{}
	for _, rule := range allRules {
		one := *s
		one.http, one.conn = s.over(t, ca.client(t, rule))
		one.base, one.tokenOf = "https://"+s.proxy.HTTPAddr().String(), noToken
		one.as = func(string) *sidecar { return &one }
		callers[rule] = &one
	}
	s.tokenOf, s.as = noToken, func(rule string) *sidecar { return callers[rule] }
	s.conn = callers[""].conn
	return s
}

// bearerOf is the token of an identity that has the name and the claims of a rule.
func bearerOf(rule string) string { return "Bearer token-of-the-identity-" + rule }

// grantsOf are the claims of a rule.
func grantsOf(rule string) []access.Grant {
	key := someKeys[rule]
	pattern, _ := access.ParsePattern(cmp.Or(key.Entity, "*"))
	return []access.Grant{{Entities: []access.Pattern{pattern}, Claims: key.Claims}}
}

// policyOf returns a policy whose identities have the claims of someKeys.
func policyOf(keys access.SAS) access.Authorizer {
	var identities []access.Identity
	for name := range someKeys {
		identities = append(identities, access.Identity{
			Name: name, Tokens: []access.Token{access.NewToken(strings.TrimPrefix(bearerOf(name), "Bearer "))}, SASRules: []string{name},
			Grants: grantsOf(name),
		})
	}
	policy := access.NewPolicy(identities, keys, nil)
	return access.Policies(func() *access.Policy { return policy })
}

// shortFolder is a folder whose path is short enough for sockets.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sb") //nolint:usetesting // the path of a socket must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
