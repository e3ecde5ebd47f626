// Package client is what the operator verbs of sidebus need to speak to a sidecar: a connection whose errors are fit
// for people, the JSON form of the API, tables, and the reading of names, durations, properties and options of
// entities.
package client
