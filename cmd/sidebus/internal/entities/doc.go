// Package entities is about files that say which queues, topics, subscriptions and rules there are to be: it reads and
// writes them, compares them with what a sidecar has, and makes what is missing. What is valid, and what differs, is
// the Broker's to say: a file is tried out on one in memory first.
package entities
