// Package wirejson is the JSON form of sidebus.v1 as docs/api describes it. The HTTP API and the clients of this
// repository read and write it.
package wirejson
