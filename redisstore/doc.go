// Package redisstore stores the entities and messages of Sidebus in Redis. It implements semantics.Store: each
// operation is one Lua script of package lua, called from one place (script.go). The clock of Redis is the only clock.
//
// It is the only package that knows Redis. lua/README.md describes the keys.
package redisstore
