package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics"
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

// SAS is the Authorizer of shared access signatures, by the rules of the moment (AUTH-5).
type SAS func() Keys

// Authenticate proves that a token was signed with the key of a rule and has not expired.
func (s SAS) Authenticate(credentials []string) (Caller, error) {
	if len(credentials) != 1 {
		return nil, refuse(
			"the request needs one header Authorization with a SharedAccessSignature; gRPC takes it as metadata",
		)
	}
	token, ok := sas.Parse(credentials[0])
	if !ok {
		return nil, refuse("the header Authorization must be: SharedAccessSignature sr=...&sig=...&se=...&skn=...")
	}
	caller := sasCaller{keys: s, token: token}
	_, err := caller.rule()
	return caller, err
}

func refuse(text string) error { return semantics.Errorf(semantics.Unauthenticated, "%s", text) }

// sasCaller is who has a token.
type sasCaller struct {
	keys  SAS
	token sas.Token
}

// rule gives the rule that the token is for, as long as the token holds.
func (c sasCaller) rule() (Key, error) {
	key, isKnown := c.keys()[c.token.Rule]
	isSigned := c.token.SignedBy(key.Primary)
	if key.Secondary != "" {
		isSigned = c.token.SignedBy(key.Secondary) || isSigned
	}
	if !isKnown || !isSigned {
		return key, refuse("the signature is wrong, or no rule has the name that skn says")
	}
	if c.token.IsExpired(time.Now()) {
		return key, refuse("the token has expired, or its se is no number of seconds since 1970")
	}
	return key, nil
}

// Permit asks the token's resource and the rule for a right.
func (c sasCaller) Permit(right Right) error {
	key, err := c.rule()
	if err != nil {
		return err
	}
	path := strings.ReplaceAll(right.Path, `\`, "/") // as ParsePath has it, so that a right is asked for what is done
	if !c.token.Covers(path, right.Below) {
		return refuse(
			"the token is for another resource: sr must be the address of the entity, or of what it lies under",
		)
	}
	isFor := key.Entity == "" || semantics.Fold(strings.ReplaceAll(key.Entity, `\`, "/")) == owner(path)
	if isFor && key.Claims&right.Claims == right.Claims {
		return nil
	}
	denied := semantics.Errorf(semantics.PermissionDenied, "the rule of the token does not permit this on %q",
		right.Path).
		With(semantics.DetailEntity, right.Path)
	switch missing := right.Claims &^ key.Claims; {
	case isFor:
		denied.Message += "; use a rule with the claim " + missing.String()
	case right.Path == "":
		denied.Message = "the rule of the token is for one entity; use a rule without entity"
	default:
		denied.Message += ", it is for another entity; use a rule for this one, or one without entity"
	}
	return denied
}

// Suffixes of the paths of sub-queues, in lower case (DLQ-2).
const (
	transfer    = "/$transfer"
	deadLetters = "/$deadletterqueue"
)

// owner is the queue or topic that a path belongs to, folded: a subscription takes its topic's rights (AUTH-2).
func owner(path string) string {
	path = strings.TrimSuffix(strings.TrimSuffix(semantics.Fold(path), deadLetters), transfer)
	if topic, _, ok := semantics.SplitSubscription(path); ok {
		return topic
	}
	return path
}
