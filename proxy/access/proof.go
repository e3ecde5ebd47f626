package access

import (
	"crypto/x509"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/proxy/sas"
)

// Proof is what a caller proves who it is with.
type Proof struct {
	Way         Way
	Credentials []string // values of the header or metadata Authorization
	Peer        Peer
}

// CredentialsOf returns a token as the header Authorization has it: clients of Service Bus send that of a shared access
// rule complete, and any other one alone.
func CredentialsOf(token string) string {
	scheme, _, hasScheme := strings.Cut(token, " ")
	if hasScheme && (strings.EqualFold(scheme, sas.Scheme) || strings.EqualFold(scheme, "Bearer")) {
		return token
	}
	return "Bearer " + token
}

// Way is how calls come in.
type Way int

// The ways.
const (
	ByClient  Way = iota // the HTTP and gRPC APIs
	ByDapr               // the socket of the Dapr component, which has no credentials
	ByHandler            // the push handlers of this sidecar, which prove nothing
)

// Peer is the other end of a connection.
type Peer struct {
	UID         *int              // user id of the process at the other end of a unix socket; nil: not known
	Certificate *x509.Certificate // of the client, verified; nil: it has none
	Addr        string            // where it connects from; empty for a unix socket
}

// isExpired reports whether the certificate has expired since the connection was made.
func (p Peer) isExpired() bool {
	return p.Certificate != nil && time.Now().After(p.Certificate.NotAfter)
}

// String returns where the peer is, for logs.
func (p Peer) String() string {
	switch {
	case p.Addr != "":
		return p.Addr
	case p.UID != nil:
		return "uid " + strconv.Itoa(*p.UID)
	default:
		return ""
	}
}
