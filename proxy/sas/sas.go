// Package sas signs and parses the tokens of shared access signatures (AUTH-5). Servers and the command line use it.
package sas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Scheme is the scheme of the header Authorization (AUTH-5).
const Scheme = "SharedAccessSignature"

// Token is a parsed token.
type Token struct {
	Rule string // the name of the rule whose key has signed it

	resource, signature, expiry string // as they stand in it
}

// Sign returns a token for all resources of a rule, which is valid until expiry.
func Sign(rule, key string, expiry time.Time) string {
	t := Token{resource: url.QueryEscape("http://localhost/"), expiry: strconv.FormatInt(expiry.Unix(), 10)}
	return Scheme + " sr=" + t.resource + "&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(t.mac(key))) +
		"&se=" + t.expiry + "&skn=" + url.QueryEscape(rule)
}

// Parse parses the value of the header Authorization, and reports whether it is a token.
func Parse(header string) (Token, bool) {
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, Scheme) {
		return Token{}, false
	}
	var t Token
	fields := map[string]*string{"sr": &t.resource, "sig": &t.signature, "se": &t.expiry, "skn": &t.Rule}
	for part := range strings.SplitSeq(strings.TrimSpace(text), "&") {
		name, value, _ := strings.Cut(part, "=")
		field := fields[name]
		if field == nil || value == "" { // unknown, or there already
			return Token{}, false
		}
		*field = value
		delete(fields, name)
	}
	rule, err := url.QueryUnescape(t.Rule)
	t.Rule = rule
	return t, err == nil && len(fields) == 0
}

// mac returns the signature with a key. The key is used unchanged, even if it is base64.
func (t Token) mac(key string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(t.resource + "\n" + t.expiry))
	return mac.Sum(nil)
}

// SignedBy reports whether the token was signed with a key.
func (t Token) SignedBy(key string) bool {
	text, err := url.QueryUnescape(t.signature)
	if err != nil {
		return false
	}
	given, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, " ", "+")) // a "+" that was not escaped
	return err == nil && hmac.Equal(given, t.mac(key))
}

// IsExpired reports whether the token has expired. A token whose expiry is not a number of seconds since 1970 has.
func (t Token) IsExpired(now time.Time) bool {
	expiry, err := strconv.ParseInt(t.expiry, 10, 64)
	return err != nil || now.Unix() >= expiry
}

// Covers reports whether the entity, or the rest of the request path below it, is in the token's resource. Only the
// path of the resource counts, without case, because a sidecar does not know its host names.
func (t Token) Covers(entity, below string) bool {
	address, err := url.QueryUnescape(t.resource)
	if err != nil {
		return false
	}
	_, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		rest = address
	}
	host, path, hasPath := strings.Cut(rest, "/")
	if !hasScheme && !hasPath && host != "localhost" && !strings.ContainsAny(host, ".:") {
		return false // the name of an entity alone; as that of a host it would be good for everything
	}
	path, _, _ = strings.Cut(path, "?")
	if path, err = url.PathUnescape(path); err != nil {
		return false
	}
	path = semantics.Fold(strings.Trim(strings.ReplaceAll(path, `\`, "/"), "/"))
	named := strings.TrimPrefix(semantics.Fold(entity+"/"+below), "/") // a list of the namespace is below no entity
	return path == "" || strings.HasPrefix(named+"/", path+"/")
}
