//go:build race

package main

// memoryFactor is how many times more memory the process may take: the race detector keeps notes of every word.
const memoryFactor = 5
