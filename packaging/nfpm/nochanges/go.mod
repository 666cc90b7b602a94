module github.com/goreleaser/chglog

go 1.26.0
