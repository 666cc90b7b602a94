//go:build race

package dial_test

const raceEnabled = true
