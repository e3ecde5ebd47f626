// Package wire converts between the messages of sidebus.v1 and the types of semantics. Servers and the command line use
// it. A function named ...Of reads a message of the wire, one named ...From is its opposite. It rejects only what it
// cannot translate, with INVALID_ARGUMENT; the Broker checks the rules.
package wire
