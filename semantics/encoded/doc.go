// Package encoded reads and writes messages as sidebus.v1.Message encodes them, which is how gRPC clients send them and
// how the store on Redis keeps them (docs/decisions/0027-messages-are-kept-as-the-wire-has-them.md). It does what the
// generated code does, without objects in between; tests compare the two.
package encoded
