// Package redisstore keeps Sidebus' entities and messages in Redis. It implements semantics.Store: each promise is one
// Lua script of package lua, called through one place (script.go), and Redis' clock is the only clock.
//
// It is the only package that knows Redis. What lies in Redis, key by key, stands in lua/README.md.
package redisstore
