module github.com/sidebus/sidebus

go 1.26.0
