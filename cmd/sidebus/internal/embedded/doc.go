// Package embedded runs a private redis-server or valkey-server for one sidecar: no TCP port, one unix socket, an
// append-only file in the data directory.
//
// Three things can go wrong with a private server, and each has one answer here. Two sidecars on one data directory
// would each believe to own it: the first one holds a file lock, the second is refused. A server left behind by a
// killed sidecar would write the same files as its successor: the server inherits a second lock, so that a start
// detects that it is still there, and ends it first; on Linux it goes down with its sidecar anyway. A server that
// crashes at run time is started again with back-off; messages are safe in the append-only file meanwhile.
package embedded
