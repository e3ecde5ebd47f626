// Package access authenticates and authorizes calls (AUTH). Every wire first calls Authenticate, before it reads the
// request, then Check, before it looks anything up (ERR-5). One table has the claims that each call needs.
//
// The Dapr component and push handlers ask in the same way. Only a policy (Policies) refuses them anything: they have
// no tokens.
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// Claims are what a caller may do (AUTH-1).
type Claims uint8

// The claims. Manage includes the other two.
const (
	Send Claims = 1 << iota
	Listen
	Manage
)

// String returns the names of the claims.
func (c Claims) String() string {
	var names []string
	for claim, name := range map[Claims]string{Send: "Send", Listen: "Listen", Manage: "Manage"} {
		if c&claim != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " and ")
}

// ParseClaim returns a claim by its name.
func ParseClaim(name string) (Claims, error) {
	switch name {
	case "Send":
		return Send, nil
	case "Listen":
		return Listen, nil
	case "Manage":
		return Manage, nil
	default:
		return 0, fmt.Errorf("is %q, must be Send, Listen or Manage", name)
	}
}

// Right is a set of claims on one entity, all of which a call needs.
type Right struct {
	Claims Claims
	Path   string // of a queue, topic, subscription or sub-queue, unchecked; empty: the whole namespace
	Below  string // rest of the request path after Path, on wires that have one

	// Settles means that the call ends the lock of a message that was received with this right.
	Settles bool
}

// Authorizer authenticates callers. It is safe for concurrent use.
type Authorizer interface {
	// Authenticate returns who a caller is. It fails with UNAUTHENTICATED.
	Authenticate(proof Proof) (Caller, error)
}

// Caller is an authenticated caller. It is safe for concurrent use.
type Caller interface {
	// Permit returns PERMISSION_DENIED if the caller does not have the right now, or UNAUTHENTICATED if the credentials
	// have expired.
	Permit(right Right) error
	// Name returns who the caller is, for logs: it has no secret. It is empty if that is not known.
	Name() string
}

// AllowAll is the Authorizer that permits everything.
type AllowAll struct{}

// Authenticate accepts any proof.
func (AllowAll) Authenticate(Proof) (Caller, error) { return AllowAll{}, nil }

// Permit permits every right.
func (AllowAll) Permit(Right) error { return nil }

// Name returns nothing.
func (AllowAll) Name() string { return "" }

type callerKey struct{}

// Authenticate authenticates a caller and returns a context with it. It fails with UNAUTHENTICATED.
func Authenticate(ctx context.Context, authorizer Authorizer, proof Proof) (context.Context, error) {
	caller, err := authorizer.Authenticate(proof)
	if err != nil {
		return ctx, err
	}
	return WithCaller(ctx, caller), nil
}

// WithCaller returns a context with a caller.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// PermitProof authenticates a caller and checks its right at once, for ways in without a context of their own.
func PermitProof(authorizer Authorizer, proof Proof, right Right) error {
	caller, err := authorizer.Authenticate(proof)
	if err != nil {
		return err
	}
	return caller.Permit(right)
}

// CallerIn returns the caller in ctx, or nil.
func CallerIn(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}

// Check returns an error if the caller in ctx may not make a call. method is the full name of the RPC. Check refuses a
// context without a caller, and a method without an entry in the table.
func Check(ctx context.Context, method string, request proto.Message) error {
	needs, known := calls[method]
	if !known {
		return errNoClaim()
	}
	return Permit(ctx, needs(request)...)
}

// CheckPath is Check for a wire without RPC requests. path is the entity, below the rest of the request path.
func CheckPath(ctx context.Context, method, path, below string) error {
	needs, known := calls[method]
	if !known {
		return errNoClaim()
	}
	rights := needs(nil)
	for i := range rights {
		rights[i].Path, rights[i].Below = path, below
	}
	return Permit(ctx, rights...)
}

func errNoClaim() error {
	return semantics.Errorf(semantics.PermissionDenied, "this call is not permitted to any claim")
}

// Permit returns an error if the caller in ctx does not have all rights.
func Permit(ctx context.Context, rights ...Right) error {
	caller := CallerIn(ctx)
	if caller == nil {
		return semantics.Errorf(semantics.Unauthenticated, "the caller is not authenticated")
	}
	for _, right := range rights {
		if err := caller.Permit(right); err != nil {
			return err
		}
	}
	return nil
}
