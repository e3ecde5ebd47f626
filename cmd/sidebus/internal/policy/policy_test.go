package policy

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

const (
	secret = "s3cret-s3cret-s3cret"
	some   = `
identities:
- name: orders-app
  uids: [1000, 0]
  certificates: [spiffe://prod/ns/shop/sa/orders]
  tokenFiles: [token]
  sasRules: [orders]
  handlers: true
  grants:
  - {entities: [orders, "eu-*"], claims: [Send, Listen]}
  - {entities: [News/subscriptions/eu], claims: [Listen]}
- name: operator
  tokenFiles: [token]
  grants:
  - {entities: ["*"], claims: [Send, Listen, Manage]}
`
)

// write writes a policy and a token into a folder of their own and returns the path of the policy.
func write(t *testing.T, policy string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"policy.yaml": policy, "token": secret + "\n", "short": "abc", "two": secret + "\n" + secret} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "policy.yaml")
}

func TestAUTH_4_PolicyFromAFile(t *testing.T) {
	t.Parallel()
	path := write(t, some)
	got, files, err := read(path)
	token := []access.Token{access.NewToken(secret)}
	want := []access.Identity{
		{
			Name: "orders-app", UIDs: []int{1000, 0}, Certificates: []string{"spiffe://prod/ns/shop/sa/orders"}, Tokens: token,
			SASRules: []string{"orders"}, Handlers: true, Grants: []access.Grant{
				{Entities: []access.Pattern{"orders", "eu-*"}, Claims: access.Send | access.Listen},
				{Entities: []access.Pattern{"news/subscriptions/eu"}, Claims: access.Listen},
			},
		},
		{Name: "operator", Tokens: token, Grants: []access.Grant{
			{Entities: []access.Pattern{"*"}, Claims: access.Send | access.Listen | access.Manage},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	beside := filepath.Join(filepath.Dir(path), "token")
	if diff := cmp.Diff([]string{path, beside, beside}, files); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

func TestAUTH_4_BadPoliciesAreErrorsThatNameTheirPlace(t *testing.T) {
	t.Parallel()
	const good = "identities:\n- name: a\n  uids: [1]\n"
	for text, want := range map[string]string{
		"":                                     "must be a mapping",
		"{}":                                   "has no identities",
		"identity: []":                         `unknown key "identity"`,
		"identities: a":                        ":1: identities must be a list",
		"identities:\n- a":                     ":2: identities[0] must be a mapping",
		"identities:\n- uids: [1]":             ":2: identities[0] must have a name",
		"identities:\n- name: a":               ":2: identities[0] no caller can be it",
		"identities:\n- name: a b":             `identities[0].name is "a b", must have`,
		good + "- name: a\n  uids: [2]":        `:4: identities[1] has the name "a", which the identity at`,
		good + "  uid: [2]":                    `:4: unknown key "identities[0].uid"`,
		"identities:\n- {name: a, uids: [x]}":  `identities[0].uids[0] is "x", must be the number`,
		"identities:\n- {name: a, uids: [-1]}": `identities[0].uids[0] is "-1"`,
		"identities:\n- {name: a, handlers: often}":                                             `identities[0].handlers is "often"`,
		"identities:\n- {name: a, certificates: ['']}":                                          "identities[0].certificates[0] is empty",
		"identities:\n- {name: a, tokenFiles: [none]}":                                          "identities[0].tokenFiles[0] cannot be read",
		"identities:\n- {name: a, tokenFiles: [short]}":                                         "identities[0].tokenFiles[0] has a token of 3 characters",
		"identities:\n- {name: a, tokenFiles: [two]}":                                           "has a token with spaces or several lines",
		good + "  grants: [{entities: [q]}]":                                                    "grants[0] must have entities and claims",
		good + "  grants: [{entities: [], claims: [Send]}]":                                     "grants[0] must have entities and claims",
		good + "  grants: [{entities: ['a//b'], claims: [Send]}]":                               "grants[0].entities[0]",
		good + "  grants: [{entities: [q], claims: [Read]}]":                                    `grants[0].claims[0] is "Read", must be Send, Listen or Manage`,
		good + "  grants: [{entities: [q], claims: [Manage]}]":                                  "grants[0] has the claim Manage, so it must list",
		good + "  grants: [{entities: [q], claims: [Send], path: x}]":                           `unknown key "identities[0].grants[0].path"`,
		good + "  grants: [{entities: [news/subscriptions/a/rules/x], claims: [Send, Listen]}]": "grants[0].entities[0]",
	} {
		if _, _, err := read(write(t, text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Authorizer(filepath.Join(t.TempDir(), "none"), nil, nil); err == nil || !strings.Contains(err.Error(), "--policy-file") {
		t.Errorf("no file: got %v", err)
	}
	if a, err := Authorizer("", nil, nil); a != (access.AllowAll{}) || err != nil {
		t.Errorf("without a flag: got %v, %v", a, err)
	}
}

// A change of the policy, or of a file with a token, has an effect within five seconds. A broken one changes nothing.
func TestAUTH_4_TheFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := write(t, some)
		authorizer, err := Authorizer(path, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		permit := func(token, entity string) semantics.Code {
			return semantics.CodeOf(access.PermitProof(
				authorizer, access.Proof{Credentials: []string{"Bearer " + token}}, access.Right{Claims: access.Manage, Path: entity},
			))
		}
		replace := func(file, text string) {
			t.Helper()
			file = filepath.Join(filepath.Dir(path), file)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second)
		}
		check := func(what, token string, want semantics.Code) {
			t.Helper()
			if got := permit(token, "orders"); got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		check("the token", secret, "")
		replace("token", "another-token-of-the-file")
		check("the old token", secret, semantics.Unauthenticated)
		check("the new token", "another-token-of-the-file", "")
		replace("policy.yaml", strings.Replace(some, "[Send, Listen, Manage]", "[Send]", 1))
		check("fewer claims", "another-token-of-the-file", semantics.PermissionDenied)
		replace("policy.yaml", "broken")
		check("a broken policy", "another-token-of-the-file", semantics.PermissionDenied)
		if n := strings.Count(log.String(), "cannot be read again"); n != 1 {
			t.Errorf("%d failures are logged:\n%s", n, &log)
		}
		if strings.Contains(log.String(), secret) || strings.Contains(log.String(), "another-token") {
			t.Errorf("the log has a token:\n%s", &log)
		}
	})
}
