package access_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics"
)

const all = access.Send | access.Listen | access.Manage

// grant returns claims on the entities that patterns match.
func grant(t *testing.T, claims access.Claims, patterns ...string) access.Grant {
	t.Helper()
	g := access.Grant{Claims: claims}
	for _, text := range patterns {
		pattern, err := access.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		g.Entities = append(g.Entities, pattern)
	}
	return g
}

func fixed(identities ...access.Identity) access.Policies {
	policy := access.NewPolicy(identities, nil, nil)
	return func() *access.Policy { return policy }
}

func bearer(token string) access.Proof {
	return access.Proof{Credentials: []string{"Bearer " + token}}
}

func certificate(name, uri, dns string) *x509.Certificate {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{"shop"}}, NotAfter: time.Now().Add(time.Hour)}
	if uri != "" {
		parsed, _ := url.Parse(uri)
		c.URIs = []*url.URL{parsed}
	}
	if dns != "" {
		c.DNSNames = []string{dns}
	}
	return c
}

// What a caller may do is decided by who it proves to be, and by nothing else.
func TestAUTH_4_HowAnIdentityIsProven(t *testing.T) {
	t.Parallel()
	uid, otherUID := 1000, 1001
	everything := []access.Grant{grant(t, all, "*")}
	p := fixed(
		access.Identity{Name: "user", UIDs: []int{uid}, Grants: everything},
		access.Identity{Name: "cn", Certificates: []string{"CN=orders"}, Grants: everything},
		access.Identity{Name: "spiffe", Certificates: []string{"spiffe://prod/ns/shop/sa/orders"}, Grants: everything},
		access.Identity{Name: "dns", Certificates: []string{"DNS:orders.shop"}, Grants: everything},
		access.Identity{Name: "subject", Certificates: []string{"CN=pay,O=shop"}, Grants: everything},
		access.Identity{Name: "token", Tokens: []access.Token{access.NewToken("0123456789abcdef")}, Grants: everything},
		access.Identity{Name: "handlers", Handlers: true, Grants: everything},
	)
	expired := certificate("orders", "", "")
	expired.NotAfter = time.Now().Add(-time.Second)
	twice := certificate("x", "spiffe://prod/ns/shop/sa/orders", "")
	twice.URIs = append(twice.URIs, &url.URL{Scheme: "spiffe", Host: "prod", Path: "/ns/shop/sa/other"})
	for name, c := range map[string]struct {
		proof access.Proof
		want  string // the names of the identities, empty: refused
	}{
		"expired meanwhile":        {access.Proof{Peer: access.Peer{Certificate: expired}}, ""},
		"a name like a subject":    {access.Proof{Peer: access.Peer{Certificate: certificate("pay,O=shop", "", "")}}, ""},
		"a URI like a name":        {access.Proof{Peer: access.Peer{Certificate: certificate("x", "CN=orders", "")}}, ""},
		"a DNS name like a URI":    {access.Proof{Peer: access.Peer{Certificate: certificate("x", "", "spiffe://prod/ns/shop/sa/orders")}}, ""},
		"nothing":                  {access.Proof{}, ""},
		"a user":                   {access.Proof{Peer: access.Peer{UID: &uid}}, "user"},
		"another user":             {access.Proof{Peer: access.Peer{UID: &otherUID}}, ""},
		"a common name":            {access.Proof{Peer: access.Peer{Certificate: certificate("orders", "", "")}}, "cn"},
		"a part of a name":         {access.Proof{Peer: access.Peer{Certificate: certificate("orders2", "", "")}}, ""},
		"a SPIFFE id":              {access.Proof{Peer: access.Peer{Certificate: certificate("x", "spiffe://prod/ns/shop/sa/orders", "")}}, "spiffe"},
		"a SPIFFE id of another":   {access.Proof{Peer: access.Peer{Certificate: certificate("x", "spiffe://prod/ns/shop/sa/orders2", "")}}, ""},
		"two SPIFFE ids":           {access.Proof{Peer: access.Peer{Certificate: twice}}, ""},
		"a DNS name":               {access.Proof{Peer: access.Peer{Certificate: certificate("x", "", "orders.shop")}}, "dns"},
		"a whole subject":          {access.Proof{Peer: access.Peer{Certificate: certificate("pay", "", "")}}, "subject"},
		"a token":                  {bearer("0123456789abcdef"), "token"},
		"the scheme in small":      {access.Proof{Credentials: []string{"bearer 0123456789abcdef"}}, "token"},
		"a wrong token":            {bearer("0123456789abcdeF"), ""},
		"no scheme":                {access.Proof{Credentials: []string{"0123456789abcdef"}}, ""},
		"two tokens":               {access.Proof{Credentials: []string{"Bearer 0123456789abcdef", "Bearer 0123456789abcdef"}}, ""},
		"a user with a token":      {access.Proof{Credentials: bearer("0123456789abcdef").Credentials, Peer: access.Peer{UID: &uid}}, "user token"},
		"a user, a wrong token":    {access.Proof{Credentials: bearer("wrong").Credentials, Peer: access.Peer{UID: &uid}}, ""},
		"handlers":                 {access.Proof{Way: access.ByHandler}, "handlers"},
		"Dapr, a user":             {access.Proof{Way: access.ByDapr, Peer: access.Peer{UID: &uid}}, "user"},
		"Dapr, another user":       {access.Proof{Way: access.ByDapr, Peer: access.Peer{UID: &otherUID}}, ""},
		"a signature without keys": {access.Proof{Credentials: []string{sas.Sign("r", "k", time.Now().Add(time.Hour))}}, ""},
	} {
		caller, err := p.Authenticate(c.proof)
		switch {
		case c.want == "" && semantics.CodeOf(err) != semantics.Unauthenticated:
			t.Errorf("%s: got %v", name, err)
		case c.want != "" && (err != nil || caller.Name() != c.want || caller.Permit(access.Right{Claims: all}) != nil):
			t.Errorf("%s: got %v, %v", name, caller, err)
		}
		if err != nil && strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s: the error has the token: %v", name, err)
		}
	}
}

func TestAUTH_4_Patterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"orders", "orders", true},
		{"orders", "ORDERS", true},
		{"Orders", "orders", true},
		{"orders", "orders2", false},
		{"orders", "my/orders", false},
		{"orders", "", false},
		{"orders", "orders/$deadletterqueue", true},
		{"orders", "orders/$Transfer/$DeadLetterQueue", true},
		{"news", "news/subscriptions/eu", true},
		{"news", "news/subscriptions/eu/$DeadLetterQueue", true},
		{"news/subscriptions/eu", "news/subscriptions/eu", true},
		{"news/subscriptions/eu", "news", false},
		{"news/subscriptions/eu", "news/subscriptions/us", false},
		{"news/subscriptions/eu", "news/subscriptions/eu/$DeadLetterQueue", true},
		{"news/subscriptions/*", "news/subscriptions/us", true},
		{"news/subscriptions/*", "news", false},
		{"news/subscriptions/e*", "news/subscriptions/eu", true},
		{"*/subscriptions/eu", "news/subscriptions/eu", true},
		{"*/subscriptions/eu", "news/subscriptions/us", false},
		{"news*/subscriptions/eu", "news-of-eu/subscriptions/eu", true},
		{"*-eu", "news/subscriptions/my-eu", false},
		{"news/*", "news/subscriptions/eu", false},
		{"news/s*", "news/subscriptions/eu", false},
		{"news/*", "news/eu/subscriptions/s", true},
		{"eu-*", "eu-orders", true},
		{"eu-*", "eu-", true},
		{"eu-*", "us-orders", false},
		{"eu-*", "eu-news/subscriptions/s", true},
		{"*-dead", "a-dead", true},
		{"*-dead", "a-deadly", false},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "abc", true},
		{"a*b*c", "acb", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*", "", true},
		{"*", "orders", true},
		{"**", "", false},
		{"*a", "", false},
		{"a/news", `a\news`, false}, // Permit converts before
	} {
		p := fixed(access.Identity{Name: "a", Handlers: true, Grants: []access.Grant{grant(t, access.Send, c.pattern)}})
		caller, err := p.Authenticate(access.Proof{Way: access.ByHandler})
		if err != nil {
			t.Fatal(err)
		}
		err = caller.Permit(access.Right{Claims: access.Send, Path: c.path})
		if c.path == `a\news` {
			c.want = true
		}
		if (err == nil) != c.want || err != nil && semantics.CodeOf(err) != semantics.PermissionDenied {
			t.Errorf("%q on %q: got %v", c.pattern, c.path, err)
		}
	}
	for _, bad := range []string{"", "a//b", "/a", strings.Repeat("a", 300), "a b\x00"} {
		if _, err := access.ParsePattern(bad); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
}

// What a caller may not do, and logs say about it, is short, however long the name is that it has asked for.
func TestAUTH_4_RefusalsAreShort(t *testing.T) {
	t.Parallel()
	p := fixed(access.Identity{Name: "a", Handlers: true})
	byPolicy, err := p.Authenticate(access.Proof{Way: access.ByHandler})
	if err != nil {
		t.Fatal(err)
	}
	signed := access.SAS(func() access.Keys { return access.Keys{"r": {Primary: "k", Claims: access.Send, Entity: "orders"}} })
	bySignature, err := signed.Authenticate(access.Proof{Credentials: []string{sas.Sign("r", "k", time.Now().Add(time.Hour))}})
	if err != nil {
		t.Fatal(err)
	}
	for _, caller := range []access.Caller{byPolicy, bySignature} {
		err := caller.Permit(access.Right{Claims: access.Listen, Path: strings.Repeat("a", 1<<20)})
		if failure := semantics.AsError(err); failure.Code != semantics.PermissionDenied ||
			len(failure.Message)+len(failure.Details[semantics.DetailEntity]) > 1000 {
			t.Errorf("%T: got %s with %d bytes", caller, failure.Code, len(failure.Message)+len(failure.Details[semantics.DetailEntity]))
		}
	}
}

// Grants of several identities add up. A signature reaches no further than its rule and its resource, and no further
// than the grants.
func TestAUTH_4_GrantsAddUpAndSignaturesLimit(t *testing.T) {
	t.Parallel()
	uid := 7
	keys := access.SAS(func() access.Keys {
		return access.Keys{"r": {Primary: "k", Claims: access.Send | access.Listen, Entity: "orders"}}
	})
	policy := access.NewPolicy([]access.Identity{
		{Name: "signed", SASRules: []string{"r"}, Grants: []access.Grant{grant(t, access.Send, "orders", "other")}},
		{Name: "user", UIDs: []int{uid}, Grants: []access.Grant{grant(t, access.Listen, "orders")}},
	}, keys, nil)
	p := access.Policies(func() *access.Policy { return policy })
	credentials := []string{sas.Sign("r", "k", time.Now().Add(time.Hour))}
	signed, err := p.Authenticate(access.Proof{Credentials: credentials})
	if err != nil {
		t.Fatal(err)
	}
	both, err := p.Authenticate(access.Proof{Credentials: credentials, Peer: access.Peer{UID: &uid}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		caller access.Caller
		claims access.Claims
		path   string
		want   semantics.Code
	}{
		"granted and signed":   {signed, access.Send, "orders", ""},
		"signed, not granted":  {signed, access.Listen, "orders", semantics.PermissionDenied},
		"granted, not signed":  {signed, access.Send, "other", semantics.PermissionDenied},
		"of both":              {both, access.Send | access.Listen, "orders", ""},
		"of the user alone":    {both, access.Listen, "orders", ""},
		"granted by no one":    {both, all, "orders", semantics.PermissionDenied},
		"elsewhere, also both": {both, access.Listen, "other", semantics.PermissionDenied},
	} {
		if err := c.caller.Permit(access.Right{Claims: c.claims, Path: c.path}); semantics.CodeOf(err) != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A changed policy counts for the next call of every caller, except that a lock which was taken under the one before may
// still be ended for as long as a lock lasts.
func TestAUTH_4_ChangesOfThePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		token := access.NewToken("0123456789abcdef")
		identity := func(claims access.Claims) []access.Identity {
			return []access.Identity{{Name: "a", Tokens: []access.Token{token}, Grants: []access.Grant{grant(t, claims, "orders")}}}
		}
		var now atomic.Pointer[access.Policy]
		now.Store(access.NewPolicy(identity(access.Listen), nil, nil))
		caller, err := access.Policies(now.Load).Authenticate(bearer("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		receive := access.Right{Claims: access.Listen, Path: "orders"}
		settle := access.Right{Claims: access.Listen, Path: "orders", Settles: true}
		check := func(what string, right access.Right, want semantics.Code) {
			t.Helper()
			if err := caller.Permit(right); semantics.CodeOf(err) != want {
				t.Errorf("%s: got %v, want %q", what, err, want)
			}
		}
		check("receive", receive, "")
		now.Store(access.NewPolicy(identity(access.Send), nil, now.Load()))
		check("receive after the change", receive, semantics.PermissionDenied)
		check("settle after the change", settle, "")
		check("settle elsewhere", access.Right{Claims: access.Listen, Path: "other", Settles: true}, semantics.PermissionDenied)
		now.Store(access.NewPolicy(nil, nil, now.Load()))
		check("receive without an identity", receive, semantics.Unauthenticated)
		check("settle without an identity", settle, semantics.Unauthenticated)
		<-time.After(semantics.MaxLockDuration)
		now.Store(access.NewPolicy(identity(access.Send), nil, now.Load()))
		check("send again", access.Right{Claims: access.Send, Path: "orders"}, "")
		<-time.After(time.Millisecond)
		check("settle when no lock is that old", settle, semantics.PermissionDenied)
	})
}

// A policy may be replaced while calls ask it.
func TestAUTH_4_APolicyIsReplacedDuringCalls(t *testing.T) {
	t.Parallel()
	token := access.NewToken("0123456789abcdef")
	identities := []access.Identity{{Name: "a", Tokens: []access.Token{token}, Grants: []access.Grant{grant(t, access.Send, "orders")}}}
	var now atomic.Pointer[access.Policy]
	now.Store(access.NewPolicy(identities, nil, nil))
	caller, err := access.Policies(now.Load).Authenticate(bearer("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			now.Store(access.NewPolicy(identities, nil, now.Load()))
		}
	}()
	for range 1000 {
		if err := caller.Permit(access.Right{Claims: access.Listen, Path: "orders", Settles: true}); semantics.CodeOf(err) != semantics.PermissionDenied {
			t.Fatalf("got %v", err)
		}
	}
	<-done
}

// A connection outlives the certificate that it was made with, but what the certificate proves does not.
func TestAUTH_4_ACertificateExpiresDuringAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fixed(access.Identity{Name: "cn", Certificates: []string{"CN=orders"}, Grants: []access.Grant{grant(t, all, "*")}})
		caller, err := p.Authenticate(access.Proof{Peer: access.Peer{Certificate: certificate("orders", "", "")}})
		if err != nil {
			t.Fatal(err)
		}
		receive := access.Right{Claims: access.Listen, Path: "orders"}
		if err := caller.Permit(receive); err != nil {
			t.Errorf("while it is valid: %v", err)
		}
		<-time.After(time.Hour + time.Second)
		if err := caller.Permit(receive); semantics.CodeOf(err) != semantics.Unauthenticated {
			t.Errorf("after it has expired: got %v", err)
		}
	})
}

// Each way to create a subscription needs Manage on it, not on its whole topic.
func TestAUTH_4_CreationsOfASubscriptionNeedTheSame(t *testing.T) {
	t.Parallel()
	caller, err := fixed(access.Identity{Name: "a", Handlers: true, Grants: []access.Grant{grant(t, access.Manage, "news/subscriptions/eu*")}}).
		Authenticate(access.Proof{Way: access.ByHandler})
	if err != nil {
		t.Fatal(err)
	}
	ctx := access.WithCaller(t.Context(), caller)
	for name, want := range map[string]semantics.Code{"eu-1": "", "us": semantics.PermissionDenied, "": semantics.PermissionDenied} {
		subscription := &sidebusv1.Subscription{Name: name}
		err := access.Check(ctx, sidebusv1.Admin_CreateSubscription_FullMethodName,
			&sidebusv1.CreateSubscriptionRequest{Topic: "topics/news", Subscription: subscription})
		if semantics.CodeOf(err) != want {
			t.Errorf("CreateSubscription %q: got %v", name, err)
		}
		err = access.Check(ctx, sidebusv1.Admin_EnsureSubscription_FullMethodName,
			&sidebusv1.EnsureSubscriptionRequest{Name: "topics/news/subscriptions/" + name, Subscription: subscription})
		if semantics.CodeOf(err) != want {
			t.Errorf("EnsureSubscription %q: got %v", name, err)
		}
	}
}
