package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Identity is one row of a policy: how a caller proves that it is this one, and what it may do (AUTH-4). A caller that
// proves several identities has the grants of all.
type Identity struct {
	Name         string
	UIDs         []int    // of the process at the other end of a unix socket
	Certificates []string // of a client over TLS: see Matches
	Tokens       []Token  // after "Bearer " in the header Authorization
	SASRules     []string // names of shared access rules: the grants count as far as the rule and the token reach
	Handlers     bool     // the push handlers of this sidecar
	Grants       []Grant
}

// Grant permits claims on all entities that one of the patterns matches.
type Grant struct {
	Entities []Pattern
	Claims   Claims
}

// Token is the hash of a bearer token.
type Token [sha256.Size]byte

// NewToken returns the hash of a token.
func NewToken(text string) Token { return sha256.Sum256([]byte(text)) }

// isOneOf reports whether a token is in a list, in a time that does not depend on how much of it is right.
func (t Token) isOneOf(list []Token) bool {
	found := 0
	for _, other := range list {
		found |= subtle.ConstantTimeCompare(t[:], other[:])
	}
	return found == 1
}

// Policy is what a policy file says at one time. It is not changed after NewPolicy.
type Policy struct {
	identities []Identity
	keys       SAS        // nil: there are no shared access rules
	replaced   []replaced // what was in force before, the newest first, for settlements
}

// replaced is a policy that another one has replaced.
type replaced struct {
	*Policy

	at time.Time
}

// mayHaveLocked reports whether a message may still be locked that was received under the policy.
func (r replaced) mayHaveLocked() bool { return time.Since(r.at) <= semantics.MaxLockDuration }

// NewPolicy returns a policy. keys may be nil. before is the policy that it replaces, or nil.
func NewPolicy(identities []Identity, keys SAS, before *Policy) *Policy {
	p := &Policy{identities: identities, keys: keys}
	if before == nil {
		return p
	}
	p.replaced = []replaced{{&Policy{identities: before.identities, keys: before.keys}, time.Now()}}
	for _, older := range before.replaced {
		if older.mayHaveLocked() {
			p.replaced = append(p.replaced, older)
		}
	}
	return p
}

// Policies is the Authorizer of a policy file. It returns the policy that is in force now.
type Policies func() *Policy

// Authenticate returns a caller with all identities that the proof is enough for. It fails if there is none, and if
// there are credentials that prove none, so that a wrong token is noticed although the connection would be enough.
func (p Policies) Authenticate(proof Proof) (Caller, error) {
	caller := &policyCaller{policies: p, proof: proof}
	proven, err := caller.prove(p())
	if err != nil {
		return nil, err
	}
	caller.last.Store(proven)
	return caller, nil
}

// policyCaller is a caller under a policy, which may change.
type policyCaller struct {
	policies Policies
	proof    Proof
	last     atomic.Pointer[proven]
}

// proven are the identities that a caller has under one policy.
type proven struct {
	policy     *Policy
	identities []provenIdentity
	sas        *sasCaller // the bearer of a shared access signature; nil: there is none
}

// provenIdentity is an identity that a caller has.
type provenIdentity struct {
	*Identity

	onlySAS bool // only a shared access signature proves it, which limits the grants
}

// prove returns the identities of the caller under a policy.
func (c *policyCaller) prove(policy *Policy) (*proven, error) {
	found := &proven{policy: policy}
	var token *Token
	switch {
	case len(c.proof.Credentials) > 1:
		return nil, refuse("the request must have at most one Authorization header")
	case len(c.proof.Credentials) == 1 && c.proof.Credentials[0] != "":
		scheme, rest, _ := strings.Cut(c.proof.Credentials[0], " ")
		switch {
		case strings.EqualFold(scheme, "Bearer"):
			hash := NewToken(strings.TrimSpace(rest))
			token = &hash
		case policy.keys != nil:
			bearer, err := policy.keys.bearer(c.proof.Credentials[0])
			if err != nil {
				return nil, err
			}
			found.sas = &bearer
		default:
			return nil, refuse("the Authorization header must be Bearer and a token; shared access signatures need --sas-keys-file")
		}
	}
	byCredentials := false
	for i := range policy.identities {
		identity := &policy.identities[i]
		byToken := token != nil && token.isOneOf(identity.Tokens)
		bySAS := found.sas != nil && slices.Contains(identity.SASRules, found.sas.token.Rule)
		byCredentials = byCredentials || byToken || bySAS
		if byToken || bySAS || identity.isAt(c.proof) {
			found.identities = append(found.identities, provenIdentity{identity, !byToken && !identity.isAt(c.proof)})
		}
	}
	switch {
	case (token != nil || found.sas != nil) && !byCredentials:
		return nil, refuse("the token belongs to no identity of the policy")
	case len(found.identities) == 0:
		return nil, refuse("the caller proves no identity of the policy; connect by the unix socket or with the client certificate " +
			"that it names, or send a token after Bearer in the header Authorization")
	}
	return found, nil
}

// isAt reports whether a connection, or the way without credentials, proves an identity.
func (i *Identity) isAt(proof Proof) bool {
	return proof.Way == ByHandler && i.Handlers ||
		proof.Peer.UID != nil && slices.Contains(i.UIDs, *proof.Peer.UID) ||
		proof.Peer.Certificate != nil && !proof.Peer.isExpired() && i.hasCertificate(proof.Peer.Certificate)
}

func (i *Identity) hasCertificate(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(i.Certificates, func(name string) bool { return Matches(certificate, name) })
}

// Matches reports whether a certificate has a name: "CN=" and its common name, its whole subject as RFC 2253 writes it,
// a URI such as a SPIFFE id, or "DNS:" and a DNS name. A comma in a common name is written as RFC 2253 does, and a URI
// has a scheme, so that no part of a certificate reads like another one. A certificate with a second URI has no SPIFFE
// id: the SPIFFE standard has every validator reject it.
func Matches(certificate *x509.Certificate, name string) bool {
	if dns, is := strings.CutPrefix(name, "DNS:"); is {
		return slices.Contains(certificate.DNSNames, dns)
	}
	for _, uri := range certificate.URIs {
		isWhole := uri.Scheme != "spiffe" || len(certificate.URIs) == 1
		if uri.IsAbs() && uri.String() == name && isWhole {
			return true
		}
	}
	subject := certificate.Subject
	return subject.CommonName != "" && name == pkix.Name{CommonName: subject.CommonName}.String() ||
		name == subject.String()
}

// Permit implements Caller. A settlement is also permitted if a policy that was in force when the message was locked
// permitted it, so that a change of the policy leaves no message to a worker that cannot settle it.
func (c *policyCaller) Permit(right Right) error {
	now := c.policies()
	proven := c.last.Load()
	if proven.policy != now || c.proof.Peer.isExpired() {
		var err error
		if proven, err = c.prove(now); err != nil {
			return err
		}
		c.last.Store(proven)
	}
	err := proven.permit(right)
	if err == nil || !right.Settles {
		return err
	}
	for _, older := range now.replaced {
		if !older.mayHaveLocked() {
			break
		}
		if before, failed := c.prove(older.Policy); failed == nil && before.permit(right) == nil {
			return nil
		}
	}
	return err
}

// Name implements Caller: the names of the identities.
func (c *policyCaller) Name() string {
	var names []string
	for _, identity := range c.last.Load().identities {
		names = append(names, identity.Name)
	}
	return strings.Join(names, " ")
}

// permit checks a right against the grants of all identities together.
func (p *proven) permit(right Right) error {
	path := strings.ReplaceAll(right.Path, `\`, "/") // as ParsePath does, so that the real path is checked
	var granted, signed Claims
	var refused error // of the signature
	if p.sas != nil {
		signed, refused = p.sas.claims(path, right.Below)
	}
	for _, identity := range p.identities {
		claims := identity.claimsOn(path)
		if identity.onlySAS {
			claims &= signed
		}
		granted |= claims
	}
	missing := right.Claims &^ granted
	switch {
	case missing == 0:
		return nil
	case refused != nil:
		return refused
	case path == "":
		return semantics.Errorf(
			semantics.PermissionDenied, "the policy does not grant %s on all entities to this caller", missing,
		)
	default:
		return semantics.Errorf(
			semantics.PermissionDenied, "the policy does not grant %s on %q to this caller", missing,
			semantics.Shorten(right.Path),
		).With(semantics.DetailEntity, semantics.Shorten(right.Path))
	}
}

// claimsOn returns what the grants of an identity permit on a path, or on the whole namespace if it is empty.
func (i *Identity) claimsOn(path string) (claims Claims) {
	for _, grant := range i.Grants {
		if slices.ContainsFunc(grant.Entities, func(pattern Pattern) bool { return pattern.matches(path) }) {
			claims |= grant.Claims
		}
	}
	return claims
}
