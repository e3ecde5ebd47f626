package compat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// sasScheme is the scheme of the header Authorization (AUTH-5).
const sasScheme = "SharedAccessSignature"

// Claims are what a rule permits (AUTH-1).
type Claims uint8

// The claims. Manage includes both others.
const (
	Send Claims = 1 << iota
	Listen
	Manage
)

// Key is a rule of shared access: whoever can sign with one of its keys may do what it claims (AUTH-5).
type Key struct {
	Primary, Secondary string // the secondary may be empty
	Claims             Claims
	Entity             string // path of the queue or topic it is for, with all below; empty: all (AUTH-2)
}

// Keys are the rules by name.
type Keys map[string]Key

// Check tells what is wrong with a rule. name is its name.
func (k Key) Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a rule must have a name")
	case k.Primary == "":
		return fmt.Errorf("must have a primary key")
	case k.Claims == 0:
		return fmt.Errorf("must have at least one of the claims Send, Listen, Manage")
	case k.Claims&Manage != 0 && k.Claims != Send|Listen|Manage:
		return fmt.Errorf("has the claim Manage, so it must list Send and Listen too")
	case k.Entity == "":
		return nil
	}
	if _, err := semantics.ParsePath(k.Entity); err != nil {
		return fmt.Errorf("is for an entity that cannot be: %s", semantics.AsError(err).Message)
	}
	return nil
}

// sasToken is a token taken apart. Its fields are as they stand in it.
type sasToken struct{ resource, signature, expiry, rule string }

// authorize checks the header Authorization of a request for what it wants to do. UNAUTHENTICATED, PERMISSION_DENIED.
func (k Keys) authorize(header []string, r route, what verb, now time.Time) error {
	refuse := func(text string) error { return semantics.Errorf(semantics.Unauthenticated, "%s", text) }
	if len(header) != 1 {
		return refuse("the request needs one header Authorization with a SharedAccessSignature")
	}
	token, ok := parseToken(header[0])
	if !ok {
		return refuse("the header Authorization must be: SharedAccessSignature sr=...&sig=...&se=...&skn=...")
	}
	key, isKnown := k[token.rule]
	isSigned := token.signedBy(key.Primary)
	if key.Secondary != "" {
		isSigned = token.signedBy(key.Secondary) || isSigned
	}
	if !isKnown || !isSigned {
		return refuse("the signature is wrong, or no rule has the name that skn says")
	}
	if expiry, err := strconv.ParseInt(token.expiry, 10, 64); err != nil || now.Unix() >= expiry {
		return refuse("the token has expired, or its se is no number of seconds since 1970")
	}
	if !token.covers(r) {
		return refuse("the token is for another resource: sr must be the address of the entity, or of what it lies under")
	}
	claim := Listen
	if what == send {
		claim = Send
	}
	isFor := key.Entity == "" || semantics.Fold(strings.ReplaceAll(key.Entity, `\`, "/")) == r.owner()
	if !isFor || key.Claims&claim == 0 {
		return semantics.Errorf(semantics.PermissionDenied, "the rule of the token does not permit this on %q", r.entity).
			With(semantics.DetailEntity, r.entity)
	}
	return nil
}

func parseToken(header string) (sasToken, bool) {
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, sasScheme) {
		return sasToken{}, false
	}
	var t sasToken
	fields := map[string]*string{"sr": &t.resource, "sig": &t.signature, "se": &t.expiry, "skn": &t.rule}
	for part := range strings.SplitSeq(strings.TrimSpace(text), "&") {
		name, value, _ := strings.Cut(part, "=")
		field := fields[name]
		if field == nil || value == "" { // unknown, or there already
			return sasToken{}, false
		}
		*field = value
		delete(fields, name)
	}
	rule, err := url.QueryUnescape(t.rule)
	t.rule = rule
	return t, err == nil && len(fields) == 0
}

// signedBy tells whether the token was signed with a key, which is used as it stands, base64 or not.
func (t sasToken) signedBy(key string) bool {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(t.resource + "\n" + t.expiry))
	text, err := url.QueryUnescape(t.signature)
	if err != nil {
		return false
	}
	given, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, " ", "+")) // a "+" that was not escaped
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

// covers tells whether the route lies under the token's resource. Of its address only the path counts, without case: a sidecar does
// not know under which names it is known.
func (t sasToken) covers(r route) bool {
	address, err := url.QueryUnescape(t.resource)
	if err != nil {
		return false
	}
	_, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		rest = address
	}
	_, path, _ := strings.Cut(rest, "/")
	path, _, _ = strings.Cut(path, "?")
	if path, err = url.PathUnescape(path); err != nil {
		return false
	}
	path = semantics.Fold(strings.Trim(strings.ReplaceAll(path, `\`, "/"), "/"))
	return path == "" || strings.HasPrefix(semantics.Fold(r.entity+"/"+r.below)+"/", path+"/")
}
