package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics"
)

// Key is a shared access rule: a token signed with one of its keys has its claims (AUTH-5).
type Key struct {
	Primary, Secondary string // the secondary may be empty
	Claims             Claims
	Entity             string // path of one queue or topic, with its subscriptions; empty: all (AUTH-2)
}

// Keys are rules by name.
type Keys map[string]Key

// Check returns an error if the rule is invalid. name is the name of the rule.
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
		return fmt.Errorf("has an invalid entity: %s", semantics.AsError(err).Message)
	}
	return nil
}

// SAS is the Authorizer of shared access signatures. It returns the current rules (AUTH-5).
type SAS func() Keys

// Authenticate checks that a token is signed with a key of its rule and has not expired. The Dapr component and push
// handlers need no token.
func (s SAS) Authenticate(proof Proof) (Caller, error) {
	if proof.Way != ByClient {
		return AllowAll{}, nil
	}
	if len(proof.Credentials) != 1 {
		return nil, refuse(
			"the request needs one Authorization header with a SharedAccessSignature; over gRPC, set it as metadata",
		)
	}
	return s.bearer(proof.Credentials[0])
}

// bearer returns the bearer of a token.
func (s SAS) bearer(credentials string) (sasCaller, error) {
	token, ok := sas.Parse(credentials)
	if !ok {
		return sasCaller{}, refuse("the Authorization header must be: SharedAccessSignature sr=...&sig=...&se=...&skn=...")
	}
	caller := sasCaller{keys: s, token: token}
	_, err := caller.rule()
	return caller, err
}

func refuse(text string) error { return semantics.Errorf(semantics.Unauthenticated, "%s", text) }

// sasCaller is the bearer of a token.
type sasCaller struct {
	keys  SAS
	token sas.Token
}

// rule returns the rule of the token, or UNAUTHENTICATED if the token is not valid now.
func (c sasCaller) rule() (Key, error) {
	key, isKnown := c.keys()[c.token.Rule]
	isSigned := c.token.SignedBy(key.Primary)
	if key.Secondary != "" {
		isSigned = c.token.SignedBy(key.Secondary) || isSigned
	}
	if !isKnown || !isSigned {
		return key, refuse("the signature is invalid, or skn names no rule; sign with a key of an existing rule")
	}
	if c.token.IsExpired(time.Now()) {
		return key, refuse("the token has expired, or se is not a number of seconds since 1970; create a new token")
	}
	return key, nil
}

// Name implements Caller: the name of the rule.
func (c sasCaller) Name() string { return c.token.Rule }

// claims returns what the token permits on a path, where below is the rest of the request path.
func (c sasCaller) claims(path, below string) (Claims, error) {
	key, err := c.rule()
	switch {
	case err != nil:
		return 0, err
	case !c.token.Covers(path, below):
		return 0, refuse("the token is for another resource; sr must be the address of the entity, or a prefix of it")
	case !key.isFor(path):
		return 0, nil
	default:
		return key.Claims, nil
	}
}

// isFor reports whether the rule is for a path.
func (k Key) isFor(path string) bool {
	return k.Entity == "" || semantics.Fold(strings.ReplaceAll(k.Entity, `\`, "/")) == owner(path)
}

// Permit checks a right against the resource of the token and the rule.
func (c sasCaller) Permit(right Right) error {
	path := strings.ReplaceAll(right.Path, `\`, "/") // as ParsePath does, so that the real path is checked
	claims, err := c.claims(path, right.Below)
	if err != nil || claims&right.Claims == right.Claims {
		return err
	}
	denied := semantics.Errorf(semantics.PermissionDenied, "the rule of the token does not permit this on %q",
		semantics.Shorten(right.Path)).
		With(semantics.DetailEntity, semantics.Shorten(right.Path))
	switch missing := right.Claims &^ claims; {
	case claims != 0:
		denied.Message += "; use a rule with the claim " + missing.String()
	case right.Path == "":
		denied.Message = "the rule of the token is for one entity; use a rule without entity"
	default:
		denied.Message += ", it is for another entity; use a rule for this one, or one without entity"
	}
	return denied
}

// Path suffixes of sub-queues, in lower case (DLQ-2).
const (
	transfer    = "/$transfer"
	deadLetters = "/$deadletterqueue"
)

// owner returns the queue or topic of a path, folded. Rights on a topic apply to its subscriptions (AUTH-2).
func owner(path string) string {
	path = withoutSubQueue(semantics.Fold(path))
	if topic, _, ok := semantics.SplitSubscription(path); ok {
		return topic
	}
	return path
}

// withoutSubQueue returns the entity of a folded path.
func withoutSubQueue(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, deadLetters), transfer)
}
