package cli

import (
	"os/exec"
	"testing"
)

// FuzzQuoteWord: a shell gives every quoted word back.
func FuzzQuoteWord(f *testing.F) {
	for _, seed := range []string{"", "a b", "it's", "$HOME", "`id`", "a\nb", "-n", "\\", "*", "~root", "ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		for i := range len(word) {
			if word[i] == 0 {
				return // no argument can hold it
			}
		}
		out, err := exec.Command("sh", "-c", "printf %s "+quoteWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q came back as %q, %v", word, out, err)
		}
	})
}

func TestInterpreter(t *testing.T) {
	tests := []struct {
		script string
		want   string // "" = refused
	}{
		{"echo hi\n", "sh -s --"},
		{"#!/bin/sh\n", "/bin/sh -s --"},
		{"#!/bin/bash -eu\necho\n", "/bin/bash -eu -s --"},
		{"#!/usr/bin/env bash", "bash -s --"},
		{"#! /usr/bin/python3\n", "/usr/bin/python3 -"},
		{"#!/opt/my shell/sh\n", ""},
		{"#!/usr/bin/awk -f\n", ""},
		{"#!\n", "sh -s --"},
	}
	for _, test := range tests {
		words, err := interpreter([]byte(test.script))
		got := ""
		for i, w := range words {
			if i > 0 {
				got += " "
			}
			got += w
		}
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%q: %q, %v, want %q", test.script, got, err, test.want)
		}
	}
}
