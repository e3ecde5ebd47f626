// Package access decides who may do what (AUTH). All wires ask it in the same way: Enter proves who makes a call before
// anything of it is read, Check asks for the rights that the call needs before anything is looked up (ERR-5). The
// claims of all calls stand in one table.
//
// Handlers that push and Dapr's component do not ask: the one is in this process, the other has a socket of its own.
package access

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// Claims are what somebody may do (AUTH-1).
type Claims uint8

// The claims. Manage includes both others.
const (
	Send Claims = 1 << iota
	Listen
	Manage
)

// String gives the claims by name. Who has Manage has the others.
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

// Right is what a call needs: all of the claims on one entity.
type Right struct {
	Claims Claims
	Path   string // of a queue, a topic, a subscription or a sub-queue, not checked; empty: of the whole namespace
	Below  string // what follows the path in the address of the request, on a wire whose addresses have that
}

// Authorizer proves who makes a call. It is safe for concurrent use.
type Authorizer interface {
	// Authenticate proves it by the values of the header or metadata Authorization. UNAUTHENTICATED.
	Authenticate(credentials []string) (Caller, error)
}

// Caller is who makes a call. It is safe for concurrent use.
type Caller interface {
	// Permit refuses a right that the caller does not have at the moment. PERMISSION_DENIED, or UNAUTHENTICATED when
	// the proof holds no longer.
	Permit(right Right) error
}

// Everybody is the Authorizer that asks nobody.
type AllowAll struct{}

// Authenticate proves nothing.
func (AllowAll) Authenticate([]string) (Caller, error) { return AllowAll{}, nil }

// Permit permits all.
func (AllowAll) Permit(Right) error { return nil }

type callerKey struct{}

// Enter proves who makes a call and puts that into its context. UNAUTHENTICATED.
func Authenticate(ctx context.Context, authorizer Authorizer, credentials []string) (context.Context, error) {
	caller, err := authorizer.Authenticate(credentials)
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// Check refuses a call that its caller may not make. method is the full name of its RPC. A context that Enter has not
// made, and a call without a claim in the table, are refused.
func Check(ctx context.Context, method string, request proto.Message) error {
	needs, known := calls[method]
	if !known {
		return errNoClaim()
	}
	return Permit(ctx, needs(request)...)
}

// CheckPath is Check on a wire that has no request of the RPC, which names one entity: the path, and what follows it in
// the address.
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
	return semantics.Errorf(semantics.PermissionDenied, "no claim permits this call")
}

// Permit refuses a call that its caller may not make for want of one of the rights.
func Permit(ctx context.Context, rights ...Right) error {
	caller, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return semantics.Errorf(semantics.Unauthenticated, "nothing is known of the caller")
	}
	for _, right := range rights {
		if err := caller.Permit(right); err != nil {
			return err
		}
	}
	return nil
}
