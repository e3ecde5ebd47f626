package access

import (
	"crypto/tls"
	"net"
)

// PeerOf returns the peer of a connection, which may be a wrapper with the method NetConn, as tls.Conn has it. It must
// be called after the first byte was read: before it, a TLS connection has no certificate.
func PeerOf(conn net.Conn) (peer Peer) {
	if addr := conn.RemoteAddr(); addr != nil && addr.Network() == "tcp" {
		peer.Addr = addr.String()
	}
	for conn != nil {
		switch c := conn.(type) {
		case *tls.Conn:
			if chains := c.ConnectionState().VerifiedChains; len(chains) > 0 {
				peer.Certificate = chains[0][0]
			}
		case *net.UnixConn:
			peer.UID = uidOf(c)
		}
		inner, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return peer
		}
		conn = inner.NetConn()
	}
	return peer
}
