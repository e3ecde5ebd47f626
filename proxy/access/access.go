// Package access authenticates and authorizes calls (AUTH). Every wire first calls Authenticate, before it reads the
// request, then Check, before it looks anything up (ERR-5). One table has the claims that each call needs.
//
// Push handlers and the Dapr component are not authorized: handlers run in this process, and Dapr has a socket of its
// own.
package access

import (
	"context"
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

// Right is a set of claims on one entity, all of which a call needs.
type Right struct {
	Claims Claims
	Path   string // of a queue, topic, subscription or sub-queue, unchecked; empty: the whole namespace
	Below  string // rest of the request path after Path, on wires that have one
}

// Authorizer authenticates callers. It is safe for concurrent use.
type Authorizer interface {
	// Authenticate checks the values of the header or metadata Authorization. It fails with UNAUTHENTICATED.
	Authenticate(credentials []string) (Caller, error)
}

// Caller is an authenticated caller. It is safe for concurrent use.
type Caller interface {
	// Permit returns PERMISSION_DENIED if the caller does not have the right now, or UNAUTHENTICATED if the credentials
	// have expired.
	Permit(right Right) error
}

// AllowAll is the Authorizer that permits everything.
type AllowAll struct{}

// Authenticate accepts any credentials.
func (AllowAll) Authenticate([]string) (Caller, error) { return AllowAll{}, nil }

// Permit permits every right.
func (AllowAll) Permit(Right) error { return nil }

type callerKey struct{}

// Authenticate authenticates a caller and returns a context with it. It fails with UNAUTHENTICATED.
func Authenticate(ctx context.Context, authorizer Authorizer, credentials []string) (context.Context, error) {
	caller, err := authorizer.Authenticate(credentials)
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
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
	caller, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return semantics.Errorf(semantics.Unauthenticated, "the caller is not authenticated")
	}
	for _, right := range rights {
		if err := caller.Permit(right); err != nil {
			return err
		}
	}
	return nil
}
